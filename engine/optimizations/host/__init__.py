"""Optimizations of the group ``host``, one file each, in the order they are applied."""

from engine.optimizations.host.async_dispatch import ASYNC_DISPATCH
from engine.optimizations.host.graph_mode import GRAPH_MODE
from engine.optimizations.host.streams import STREAM_COUNT
from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = (GRAPH_MODE, ASYNC_DISPATCH, STREAM_COUNT)
