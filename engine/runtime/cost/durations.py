"""Durations of operators on a device and on its host."""

from dataclasses import fields

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.devices.spec import DeviceSpec
from engine.runtime.cost.attention import attention_ns
from engine.runtime.cost.matmul import matmul_ns
from engine.runtime.cost.operators import Law, OperatorTable
from engine.runtime.cost.parameters import CostParameters, load_parameters
from engine.runtime.cost.rates import Rates, family_columns
from engine.runtime.cost.vector import vector_ns


def operator_durations(
    device: DeviceSpec, operators: OperatorTable, parameters: CostParameters | None = None
) -> Int64Array:
    """Returns int64 ns, shape (n,): time of each operator on an otherwise idle device, launch included.

    A kernel that finds nothing to do (no expert was chosen) returns after ``empty_kernel_ns``.

    Args:
        device: Where they run.
        operators: What runs.
        parameters: Fitted constants; by default the shipped ones, under those that were fitted on the device.
    """
    constants = parameters or load_parameters().on(device)
    rates = Rates.of(device, constants)
    idle = (operators.batch == 0) | (operators.m == 0) | (operators.n == 0) | (operators.k == 0)
    duration_ns: Float64Array = np.full(len(operators), constants.shared_value("empty_kernel_ns"))
    for law, price in ((Law.VECTOR, vector_ns), (Law.MATMUL, matmul_ns), (Law.ATTENTION, attention_ns)):
        rows = np.flatnonzero((operators.law == law) & ~idle)
        if len(rows):
            distinct, place = _distinct(operators, rows)
            chosen = operators.select(distinct)
            duration_ns[rows] = price(rates, chosen, family_columns(constants, chosen, law))[place]
    return np.rint(duration_ns).astype(np.int64)


def _distinct(operators: OperatorTable, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns one row of each distinct work among ``rows``, and for every row which one: layers repeat few shapes."""
    columns = [
        getattr(operators, item.name)[rows].astype(np.int64)
        for item in fields(operators)
        if item.name not in {"families", "kernels"}
    ]
    order = np.lexsort(columns)
    sorted_columns = np.stack(columns)[:, order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (sorted_columns[:, 1:] != sorted_columns[:, :-1]).any(axis=0)
    place = np.empty(len(rows), np.int64)
    place[order] = np.cumsum(starts) - 1
    return rows[order[starts]], place


def host_durations(device: DeviceSpec, operators: OperatorTable) -> Int64Array:
    """Returns int64 ns, shape (n,): host time to dispatch each operator eagerly.

    One dispatch and its first launch, then one launch for each further kernel. Host work does not depend on sizes, so
    small batches become host-bound by themselves.
    """
    further = np.maximum(operators.kernels.astype(np.int64) - 1, 0)
    return np.rint(device.host_dispatch_ns + device.host_launch_ns * further).astype(np.int64)
