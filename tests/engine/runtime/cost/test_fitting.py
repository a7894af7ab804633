"""Fitting finds constants that were used to make the rows, and repeats itself exactly."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from engine.devices import load_device
from engine.devices.spec import Provenance
from engine.runtime.cost import concatenate, load_parameters, matmul
from engine.runtime.cost.catalogue import norm, swiglu
from engine.runtime.cost.fitting import MeasuredKernels, fit_families


@pytest.fixture
def rows():
    sizes = np.array([256, 1024, 4096, 16384])
    kernels = concatenate([norm(sizes, 4096), swiglu(sizes, 8192), matmul(sizes, 4096, 4096)])
    table = MeasuredKernels(load_device("910b2"), kernels, np.arange(len(kernels)), np.ones(len(kernels)))
    truth = load_parameters()
    slow = replace(truth.families["swiglu"], block_cycles=90.0, fixed_ns=9000.0)
    truth = replace(truth, families={**truth.families, "swiglu": slow})
    return replace(table, measured_ns=table.predicted_ns(truth))


def error(rows, parameters):
    return np.abs(rows.predicted_ns(parameters) / rows.measured_ns - 1).max()


def test_made_up_constants_are_found_again(rows):
    start = load_parameters()
    fitted = fit_families([rows], start, "rows made here")
    assert error(rows, fitted) < 0.08 < error(rows, start)
    assert fitted.families["swiglu"].source == "fitted to 4 rows: rows made here"
    assert fitted.families["swiglu"].kind is Provenance.MEASURED
    assert fitted.families["gelu"] == start.families["gelu"]


def test_the_same_rows_give_the_same_constants(rows):
    first, second = (fit_families([rows], load_parameters(), "x").families for _ in range(2))
    assert first == second


def test_families_can_be_left_as_they_are(rows):
    start = load_parameters()
    fitted = fit_families([rows], start, "x", fixed=frozenset({"matmul", "rms_norm", "swiglu"}))
    assert fitted.families == start.families


def test_several_kernels_of_one_row_are_fitted_to_their_sum(rows):
    joined = MeasuredKernels(rows.device, rows.kernels, rows.row % 4, np.bincount(rows.row % 4, rows.measured_ns))
    assert (
        np.abs(joined.predicted_ns(fit_families([joined], load_parameters(), "x")) / joined.measured_ns - 1).max() < 0.1
    )


def test_a_fit_can_be_stopped(rows):
    with pytest.raises(OperationCancelled):
        fit_families([rows], load_parameters(), "x", cancel=CancelToken(lambda: True))
