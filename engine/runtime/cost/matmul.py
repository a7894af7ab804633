"""Matrix products on cores that compute tiles.

A kernel picks a base tile bm x bn that fits the accumulator (L0C) and deals tiles to cores; if there are fewer tiles
than cores it splits the summed dimension. For each tile shape and split

    rounds  = ceil(batch x ceil(m / bm) x ceil(n / bn) x split / cores)
    tile    = max(matrix cycles / cube_ratio, bytes of its two strips / load rate) + row_cycles
    core    = rounds x tile / clock
    memory  = (inputs + outputs + partial sums) / rate, strips read again where they exceed the cache
    t       = fixed + soft maximum(core, memory, collective the kernel overlaps)

and the kernel's tiling search is taken to find the best. Matrix cycles count dimensions padded to 16 (the unit
multiplies 16 x 16 x 16 a cycle; 16 x 32 x 16 for int8), which is where small and odd shapes lose.
"""

import numpy as np

from engine.core.arrays import Float64Array
from engine.devices.spec import DType
from engine.runtime.cost.operators import OperatorTable
from engine.runtime.cost.rates import FamilyColumns, Rates, combined_ns, element_bytes

UNIT = 16
"""Rows and columns of the matrix unit."""
TILES = (
    (128, 256),
    (256, 128),
    (128, 128),
    (64, 256),
    (256, 64),
    (64, 128),
    (128, 64),
    (64, 64),
    (16, 256),
    (32, 256),
    (16, 128),
    (256, 16),
)
"""Base tiles of at most 32,768 accumulators: 128 KiB of fp32 in L0C."""
SPLITS = (1, 2, 4, 8)
"""Ways the summed dimension is divided among cores."""
ALIGNMENT_BYTES = 32


def matmul_ns(rates: Rates, operators: OperatorTable, family: FamilyColumns) -> Float64Array:
    """Returns float64 ns, shape (n,), by the law above."""
    best: Float64Array = np.full(len(operators), np.inf)
    for tile in TILES:
        for split in SPLITS:
            best = np.minimum(best, _tiled_ns(rates, operators, family, tile, split))
    return np.asarray(family.fixed_ns + best, np.float64)


def _tiled_ns(
    rates: Rates, operators: OperatorTable, family: FamilyColumns, tile: tuple[int, int], split: int
) -> Float64Array:
    m, n, k = (column.astype(np.float64) for column in (operators.m, operators.n, operators.k))
    size = element_bytes(operators)
    rows, columns = (np.minimum(limit, _padded(extent)) for limit, extent in ((tile[0], m), (tile[1], n)))
    depth = np.ceil(k / split)
    tiles = operators.batch * np.ceil(m / rows) * np.ceil(n / columns) * split
    rounds = np.ceil(tiles / rates.core_count)
    unit_depth = np.where(size == 1, 2 * UNIT, UNIT)
    matrix_cycles = 2.0 * rows * columns * np.ceil(depth / unit_depth) * unit_depth / _flop_per_cycle(rates, operators)
    strips = (rows + columns) * depth * size * _unaligned_slowdown(operators, size, family)
    load_cycles = strips / rates.tile_bytes_per_core_cycle
    tile_cycles = np.maximum(matrix_cycles / family.cube_ratio, load_cycles) + family.row_cycles
    core_ns = rounds * tile_cycles / rates.cycles_per_ns
    inputs = operators.read_bytes.astype(np.float64)
    partial = operators.batch * m * n * 8.0 * (split > 1) * split
    footprint = inputs + operators.write_bytes + partial
    again = np.maximum(tiles * strips - inputs, 0.0) * np.clip(inputs / rates.l2_bytes - 1.0, 0.0, 1.0)
    moved = footprint + again * family.traffic_ratio
    memory_ns = moved / (rates.hbm_bytes_per_ns * family.memory_ratio)
    return combined_ns(core_ns, memory_ns, operators.transfer_ns.astype(np.float64))


def _padded(extent: Float64Array) -> Float64Array:
    return np.asarray(np.ceil(extent / UNIT) * UNIT, np.float64)


def _flop_per_cycle(rates: Rates, operators: OperatorTable) -> Float64Array:
    by_dtype = np.array([rates.device.cube_flop_per_core_cycle(dtype) for dtype in DType], np.float64)
    return by_dtype[operators.dtype]


def _unaligned_slowdown(operators: OperatorTable, size: Float64Array, family: FamilyColumns) -> Float64Array:
    """Rows of the inputs that do not start on 32 bytes are fetched in more and smaller requests."""
    unaligned = (operators.k * size % ALIGNMENT_BYTES != 0) | (operators.n * size % ALIGNMENT_BYTES != 0)
    return np.where(unaligned & (operators.m > 1), 1.0 + family.unaligned_cycles, 1.0)
