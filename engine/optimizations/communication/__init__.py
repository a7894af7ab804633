"""Optimizations of the group ``communication``, one file each, in the order they are applied."""

from engine.optimizations.communication.overlap_gradients import OVERLAP_GRADIENTS
from engine.optimizations.communication.overlap_parameters import OVERLAP_PARAMETERS
from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = (OVERLAP_GRADIENTS, OVERLAP_PARAMETERS)
