"""Optimizations of the group ``serving``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization
from engine.optimizations.serving.chunked_prefill import CHUNKED_PREFILL
from engine.optimizations.serving.dynamic_batching import DYNAMIC_BATCHING
from engine.optimizations.serving.prefix_cache import PREFIX_CACHE
from engine.optimizations.serving.quantization import QUANTIZATION
from engine.optimizations.serving.speculative import SPECULATIVE

OPTIMIZATIONS: tuple[Optimization, ...] = (
    QUANTIZATION,
    DYNAMIC_BATCHING,
    CHUNKED_PREFILL,
    PREFIX_CACHE,
    SPECULATIVE,
)
