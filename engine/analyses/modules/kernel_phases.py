"""Phases of training from the kernels alone: gradients and optimizers name themselves."""

import re
from collections.abc import Iterable

import numpy as np

from engine.analyses.modules.host_context import BACKWARD, FORWARD, OPTIMIZER, PHASES
from engine.core.arrays import BoolArray, Int64Array

_BACKWARD = re.compile(r"Grad(?:V\d+)?(?:D)?\b|Grad[A-Z_]|Backward|Backprop|_bwd|dgrad|wgrad|backward")
_OPTIMIZER = re.compile(r"^Apply|^LpNorm|[Aa]dam|multi_tensor_apply|^Lamb|[Mm]omentum")
_LOSS_BACKWARD = re.compile(r"^IndexPut|^Scatter(?!Update)")
"""A written-out cross-entropy goes backward by subtracting 1 at the targets; it has no gradient kernel of its own."""
_EMBEDDING = re.compile(r"^Gather|^Embedding$")
_GRADIENT_SUFFIX = re.compile(r"Grad(?:V\d+)?$")


def is_training(type_names: Iterable[str]) -> bool:
    """Returns whether any of the kernels computes gradients or updates parameters."""
    return any(_BACKWARD.search(name) or _OPTIMIZER.search(name) for name in type_names)


def phases_of_kernels(type_names: list[str], type_index: Int64Array) -> Int64Array:
    """Returns an index into ``PHASES`` for each kernel, int64, shape (n,).

    Gradient kernels are backward, optimizer kernels optimizer; a kernel whose own gradient kernel occurs in the capture
    (RmsNorm beside RmsNormGrad) is forward. What says nothing of itself (MatMul, Add) takes the phase of the kernel
    before it, at the beginning that of the one after. Without any gradient or optimizer kernel everything is forward.
    A recomputed forward inside the backward pass is forward. Between the last forward and the first backward kernel,
    writing into scattered places starts the backward pass; before the next forward kernel, an embedding starts it.

    Args:
        type_names: Operator types (or kernel names).
        type_index: int64, shape (n,), by start: which type each kernel has.
    """
    bases = {_GRADIENT_SUFFIX.sub("", name) for name in type_names if _GRADIENT_SUFFIX.search(name)}
    verdicts = np.zeros(len(type_names), dtype=np.int64)
    for index, name in enumerate(type_names):
        if _OPTIMIZER.search(name):
            verdicts[index] = PHASES.index(OPTIMIZER)
        elif _BACKWARD.search(name):
            verdicts[index] = PHASES.index(BACKWARD)
        elif name in bases:
            verdicts[index] = PHASES.index(FORWARD)
    phase = verdicts[type_index]
    if not np.any(phase > PHASES.index(FORWARD)):
        return np.full(len(phase), PHASES.index(FORWARD), dtype=np.int64)
    scatters, gathers = (
        np.array([shape.search(name) is not None for name in type_names])[type_index]
        for shape in (_LOSS_BACKWARD, _EMBEDDING)
    )
    _mark_between(phase, scatters, FORWARD, BACKWARD)
    for before in (BACKWARD, OPTIMIZER):
        _mark_between(phase, gathers, before, FORWARD)
    known = np.where(phase > 0, np.arange(len(phase)), 0)
    filled = phase[np.maximum.accumulate(known)]
    first = int(np.argmax(phase > 0))
    filled[:first] = phase[first]
    return filled


def _mark_between(phase: Int64Array, marks: BoolArray, before: str, after: str) -> None:
    """Puts marked kernels that stand between a kernel of one phase and one of another into the latter, in place."""
    named = np.flatnonzero(phase > 0)
    places = np.flatnonzero(marks & (phase == 0))
    follower = np.searchsorted(named, places)
    inside = (follower > 0) & (follower < len(named))
    places, follower = places[inside], follower[inside]
    fits = (phase[named[follower - 1]] == PHASES.index(before)) & (phase[named[follower]] == PHASES.index(after))
    phase[places[fits]] = PHASES.index(after)
