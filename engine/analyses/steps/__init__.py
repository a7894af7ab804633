"""Profiler steps and where each one's time went, by the formats' own definitions."""

from engine.analyses.steps.step_times import (
    Step,
    steps,
)

__all__ = [
    "Step",
    "steps",
]
