"""Decoder models as data."""

from engine.workloads.models.spec import ModelSpec

__all__ = ["ModelSpec"]
