"""Operators of the vector units: norms, activations, softmax, casts, copies, optimizers, routing.

    t = fixed + soft maximum of
          bytes x traffic / (streaming rate x memory_ratio)
          (ceil(rows / cores) x row_cycles' + elements / 64 / cores x block_cycles) / clock

Rows are dealt to cores whole, so a tensor of fewer rows than cores leaves cores idle only in its per-row part: kernels
split long rows. row_cycles' = row_cycles, plus unaligned_cycles where a row does not start on 32 bytes.
"""

import numpy as np

from engine.core.arrays import Float64Array
from engine.runtime.cost.operators import OperatorTable
from engine.runtime.cost.rates import BLOCK_ELEMENTS, FamilyColumns, Rates, combined_ns, element_bytes

ALIGNMENT_BYTES = 32
"""Size of a unified-buffer block: rows of other sizes are moved by slower instructions."""


def vector_ns(rates: Rates, operators: OperatorTable, family: FamilyColumns) -> Float64Array:
    """Returns float64 ns, shape (n,), by the law above."""
    rows = operators.m.astype(np.float64) * operators.batch
    elements = rows * operators.n
    size = element_bytes(operators)
    moved = (operators.read_bytes + operators.write_bytes).astype(np.float64)
    memory_ns = rates.stream_ns(moved * family.traffic_ratio, moved) / family.memory_ratio
    unaligned = (operators.n * size) % ALIGNMENT_BYTES != 0
    row_cycles = family.row_cycles + np.where(unaligned & (rows > 1), family.unaligned_cycles, 0.0)
    blocks = elements / BLOCK_ELEMENTS * rates.block_vector_cycles
    cycles = (np.ceil(rows / rates.vector_core_count) * row_cycles) + (
        blocks / rates.vector_core_count * family.block_cycles
    )
    return np.asarray(family.fixed_ns + combined_ns(memory_ns, cycles / rates.cycles_per_ns), np.float64)
