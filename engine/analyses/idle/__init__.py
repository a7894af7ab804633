"""Every device gap of at least 20 µs, with one cause."""

from engine.analyses.idle.idle_gaps import (
    IdleCause,
    IdleGap,
    idle_gaps,
)

__all__ = [
    "IdleCause",
    "IdleGap",
    "idle_gaps",
]
