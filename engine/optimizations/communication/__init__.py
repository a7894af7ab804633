"""Optimizations of the group ``communication``, one file each, in the order they are applied."""

from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = ()
