"""Fused attention: matrix units compute scores and values, vector units the softmax between them.

    tasks  = batch x heads x ceil(queries / 128)      dealt to cores in rounds
    cube   = 4 x scores x head size / (rate x cube_ratio)
    vector = scores / 64 x block_cycles / cores
    memory = inputs and outputs / rate
    t      = fixed + soft maximum(cube + vector, memory), cube and vector stretched by idle cores of the last round

Cube and vector are added, not overlapped: the two kinds of core hand scores to each other through the cache block by
block (measured: at equal matrix work, half as many scores save 22 %). Backward computes five products for two.
"""

import numpy as np

from engine.core.arrays import Float64Array
from engine.devices.spec import DType
from engine.runtime.cost.operators import OperatorTable, visible_scores
from engine.runtime.cost.rates import BLOCK_ELEMENTS, FamilyColumns, Rates, combined_ns

QUERY_BLOCK = 128
"""Queries one core takes at a time."""


def attention_ns(rates: Rates, operators: OperatorTable, family: FamilyColumns) -> Float64Array:
    """Returns float64 ns, shape (n,), by the law above."""
    heads = (operators.batch * operators.heads).astype(np.float64)
    blocks = np.ceil(operators.m / QUERY_BLOCK)
    tasks = heads * blocks
    stretch = np.ceil(tasks / rates.core_count) * rates.core_count / tasks
    padded = visible_scores(operators) * np.maximum(16.0 / np.maximum(operators.m, 1), 1.0)
    scores = heads * padded
    flop_per_cycle = np.array([rates.device.cube_flop_per_core_cycle(dtype) for dtype in DType])[operators.dtype]
    cube_cycles = 4.0 * scores * operators.k / flop_per_cycle / rates.core_count / family.cube_ratio
    vector_cycles = scores / BLOCK_ELEMENTS * family.block_cycles * rates.block_vector_cycles / rates.vector_core_count
    task_cycles = np.ceil(tasks / rates.core_count) * family.row_cycles
    core_ns = ((cube_cycles + vector_cycles) * stretch + task_cycles) / rates.cycles_per_ns
    moved = (operators.read_bytes + operators.write_bytes).astype(np.float64)
    memory_ns = rates.stream_ns(moved * family.traffic_ratio, moved, operators.cold) / family.memory_ratio
    return np.asarray(family.fixed_ns + combined_ns(core_ns, memory_ns), np.float64)
