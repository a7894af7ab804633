"""Operators of the vector units: norms, activations, softmax, casts, copies, optimizers, routing.

    t = fixed + soft maximum of
          bytes x traffic / (streaming rate x memory_ratio)
          (rows' x row_cycles' + blocks' x block_cycles) / clock

rows' = ceil(rows / cores): rows are dealt to cores whole. blocks' are 256-byte fp32 blocks per core: those of rows'
where a row stays on one core (reductions), all blocks / cores where any core takes any part (elementwise).
row_cycles' = row_cycles, plus unaligned_cycles where a row does not start on 32 bytes.
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
    memory_ns = rates.stream_ns(moved * family.traffic_ratio, moved, operators.cold) / family.memory_ratio
    unaligned = (operators.n * size) % ALIGNMENT_BYTES != 0
    row_cycles = family.row_cycles + np.where(unaligned & (rows > 1), family.unaligned_cycles, 0.0)
    rows_per_core = np.ceil(rows / rates.vector_core_count)
    whole = rows_per_core * np.ceil(operators.n / BLOCK_ELEMENTS)
    spread = elements / BLOCK_ELEMENTS / rates.vector_core_count
    blocks = np.where(family.rows_whole, whole, spread) * rates.block_vector_cycles
    cycles = rows_per_core * row_cycles + blocks * family.block_cycles
    return np.asarray(family.fixed_ns + combined_ns(memory_ns, cycles / rates.cycles_per_ns), np.float64)
