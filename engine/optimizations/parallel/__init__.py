"""Optimizations of the group ``parallel``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization
from engine.optimizations.parallel.layout import LAYOUT

OPTIMIZATIONS: tuple[Optimization, ...] = (LAYOUT,)
