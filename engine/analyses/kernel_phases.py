"""Phases of training from the kernels alone: gradients and optimizers name themselves."""

import re

import numpy as np

from engine.analyses.host_context import BACKWARD, FORWARD, OPTIMIZER, PHASES
from engine.core.arrays import BoolArray, Int64Array

_BACKWARD = re.compile(r"Grad(?:V\d+)?(?:D)?\b|Grad[A-Z_]|Backward|Backprop|_bwd|dgrad|wgrad|backward")
_OPTIMIZER = re.compile(r"^Apply|^LpNorm|[Aa]dam|multi_tensor_apply|^Lamb|[Mm]omentum")
_LOSS_BACKWARD = re.compile(r"^IndexPut|^Scatter(?!Update)")
"""A written-out cross-entropy goes backward by subtracting 1 at the targets; it has no gradient kernel of its own."""
_GRADIENT_SUFFIX = re.compile(r"Grad(?:V\d+)?$")


def phases_of_kernels(type_names: list[str], type_index: Int64Array) -> Int64Array:
    """Returns an index into ``PHASES`` for each kernel, int64, shape (n,).

    Gradient kernels are backward, optimizer kernels optimizer; a kernel whose own gradient kernel occurs in the capture
    (RmsNorm beside RmsNormGrad) is forward. What says nothing of itself (MatMul, Add) takes the phase of the kernel
    before it, at the beginning that of the one after. Without any gradient or optimizer kernel everything is forward.
    A recomputed forward inside the backward pass is forward. Between the last forward and the first backward kernel,
    writing into scattered places starts the backward pass.

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
    _mark_loss(phase, np.array([_LOSS_BACKWARD.search(name) is not None for name in type_names])[type_index])
    known = np.where(phase > 0, np.arange(len(phase)), 0)
    filled = phase[np.maximum.accumulate(known)]
    first = int(np.argmax(phase > 0))
    filled[:first] = phase[first]
    return filled


def _mark_loss(phase: Int64Array, scattered: BoolArray) -> None:
    """Marks scattered writes between a forward and the next backward kernel as backward, in place."""
    named = np.flatnonzero(phase > 0)
    places = np.flatnonzero(scattered & (phase == 0))
    after = np.searchsorted(named, places)
    between = (after > 0) & (after < len(named))
    places, after = places[between], after[between]
    forward = phase[named[after - 1]] == PHASES.index(FORWARD)
    backward = phase[named[after]] == PHASES.index(BACKWARD)
    phase[places[forward & backward]] = PHASES.index(BACKWARD)
