"""Optimizations of the group ``memory``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization
from engine.optimizations.memory.amc import AMC
from engine.optimizations.memory.expandable_segments import EXPANDABLE_SEGMENTS
from engine.optimizations.memory.gc_threshold import GC_THRESHOLD
from engine.optimizations.memory.max_split_size import MAX_SPLIT_SIZE
from engine.optimizations.memory.offload import OFFLOAD
from engine.optimizations.memory.periodic_check import PERIODIC_CHECK
from engine.optimizations.memory.recompute import RECOMPUTE
from engine.optimizations.memory.restart import RESTART
from engine.optimizations.memory.reuse_fp32_parameters import REUSE_FP32_PARAMETERS
from engine.optimizations.memory.static_plan import STATIC_PLAN
from engine.optimizations.memory.stitching import STITCHING
from engine.optimizations.memory.tiering import TIERING

OPTIMIZATIONS: tuple[Optimization, ...] = (
    RECOMPUTE,
    OFFLOAD,
    TIERING,
    REUSE_FP32_PARAMETERS,
    EXPANDABLE_SEGMENTS,
    STITCHING,
    STATIC_PLAN,
    AMC,
    MAX_SPLIT_SIZE,
    GC_THRESHOLD,
    PERIODIC_CHECK,
    RESTART,
)
