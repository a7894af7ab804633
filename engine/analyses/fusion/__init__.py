"""Sequences of small operators that one real fused operator replaces, and frequent sequences besides them."""

from engine.analyses.fusion.candidates import (
    FusionCandidate,
    fusion_candidates,
)
from engine.analyses.fusion.results import Occurrence, Range3

__all__ = [
    "FusionCandidate",
    "Occurrence",
    "Range3",
    "fusion_candidates",
]
