"""Device time by phase, layer, module and source line."""

from engine.analyses.modules.module_times import (
    OUTSIDE_LAYERS,
    OUTSIDE_MODULES,
    KernelPlaces,
    ModuleTime,
    kernel_places,
    module_times,
)

__all__ = [
    "OUTSIDE_LAYERS",
    "OUTSIDE_MODULES",
    "KernelPlaces",
    "ModuleTime",
    "kernel_places",
    "module_times",
]
