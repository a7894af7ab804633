"""Optimizations of the group ``communication``, one file each, in the order they are applied."""

from engine.optimizations.communication.overlap_gradients import OVERLAP_GRADIENTS
from engine.optimizations.communication.overlap_parameters import OVERLAP_PARAMETERS
from engine.optimizations.communication.quantized_gradients import QUANTIZED_GRADIENTS
from engine.optimizations.communication.topk_compression import TOPK_COMPRESSION
from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = (
    OVERLAP_GRADIENTS,
    OVERLAP_PARAMETERS,
    TOPK_COMPRESSION,
    QUANTIZED_GRADIENTS,
)
