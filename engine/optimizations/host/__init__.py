"""Optimizations of the group ``host``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = ()
