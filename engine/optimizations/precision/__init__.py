"""Optimizations of the group ``precision``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization
from engine.optimizations.precision.mixed import MIXED
from engine.optimizations.precision.quantized_training import QUANTIZED_TRAINING

OPTIMIZATIONS: tuple[Optimization, ...] = (MIXED, QUANTIZED_TRAINING)
