"""Optimizations of the group ``communication``, one file each, in the order they are applied.

Overlaps come before compression, so that every bucket is compressed by itself where its gradients are complete.
"""

from engine.optimizations.communication.algorithm import ALGORITHM
from engine.optimizations.communication.chunking import CHUNKING
from engine.optimizations.communication.overlap_gradients import OVERLAP_GRADIENTS
from engine.optimizations.communication.overlap_parameters import OVERLAP_PARAMETERS
from engine.optimizations.communication.overlap_tensor_parallel import OVERLAP_TENSOR_PARALLEL
from engine.optimizations.communication.quantized_gradients import QUANTIZED_GRADIENTS
from engine.optimizations.communication.topk_compression import TOPK_COMPRESSION
from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = (
    OVERLAP_TENSOR_PARALLEL,
    CHUNKING,
    OVERLAP_GRADIENTS,
    OVERLAP_PARAMETERS,
    TOPK_COMPRESSION,
    QUANTIZED_GRADIENTS,
    ALGORITHM,
)
