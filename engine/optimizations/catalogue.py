"""All optimizations, in the order they are applied; plug-ins come after the built-ins of their group."""

from engine.core.registry import Registry
from engine.optimizations import communication, fusion, host, memory, parallel, precision, serving
from engine.optimizations.interface import Group, Optimization
from engine.optimizations.job_kinds import checked_by_kind

ENTRY_POINTS = "cannscope.optimizations"


def optimization_registry() -> Registry[Optimization]:
    """Returns every built-in and installed optimization. Raises PluginError for an id that is taken."""
    built_ins = (
        *parallel.OPTIMIZATIONS,
        *precision.OPTIMIZATIONS,
        *fusion.OPTIMIZATIONS,
        *communication.OPTIMIZATIONS,
        *host.OPTIMIZATIONS,
        *memory.OPTIMIZATIONS,
        *serving.OPTIMIZATIONS,
    )
    return Registry(tuple(checked_by_kind(item) for item in built_ins), ENTRY_POINTS)


def in_order(registry: Registry[Optimization]) -> tuple[Optimization, ...]:
    """Returns the optimizations in the order they are applied: by group, then as registered."""
    order = list(Group)
    return tuple(sorted(registry, key=lambda item: order.index(item.group)))
