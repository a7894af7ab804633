"""Device memory: peaks, what was alive at the peak, headroom, leaks, lifetimes."""

from engine.analyses.memory.memory_analysis import (
    NET_CHANGE,
    MemoryAnalysis,
    StepMemory,
    analysed_curve,
    main_blocks,
    main_curve,
    memory_analysis,
)
from engine.analyses.memory.memory_blocks import Leak, LifetimeBin, LiveAtPeak

__all__ = [
    "NET_CHANGE",
    "Leak",
    "LifetimeBin",
    "LiveAtPeak",
    "MemoryAnalysis",
    "StepMemory",
    "analysed_curve",
    "main_blocks",
    "main_curve",
    "memory_analysis",
]
