"""Matrix products on cores that compute tiles.

A kernel picks a base tile bm x bn that fits the accumulator (L0C) and deals tiles to cores; if there are fewer tiles
than cores it splits the summed dimension. For each tile shape and split

    rounds  = ceil(batch x ceil(m / bm) x ceil(n / bn) x split / cores)
    tile    = max(matrix cycles / cube_ratio, bytes of its two strips / load rate) x (1 + block_cycles if transposed)
              + row_cycles
    core    = rounds x tile / clock
    memory  = (inputs + outputs + partial sums + strips read again x traffic_ratio) / rate
    t       = fixed + soft maximum(core, memory, collective the kernel overlaps)

Cores work on a near-square block of tiles at a time and share its strips while they walk along k. A block's strips are
read again for the next block as far as the smaller operand exceeds the cache (1 - cache / operand of them). Sharing
ends where cores drift apart further along k than the cache is deep: drift = tile_drift_ratio x k, depth = cache /
strips of a block per element of k; 1 - depth / drift of all strips are then read by every core for itself.

The kernel's tiling search is taken to find the best. Matrix cycles count dimensions padded to 16 (the unit multiplies
16 x 16 x 16 a cycle; 16 x 32 x 16 for int8), which is where small and odd shapes lose.
"""

import numpy as np

from engine.core.arrays import Float64Array
from engine.devices.spec import DType
from engine.runtime.cost.operators import OperatorTable
from engine.runtime.cost.rates import FamilyColumns, Rates, combined_ns, element_bytes

UNIT = 16
"""Rows and columns of the matrix unit."""
TILE_ROWS = np.array([128, 256, 128, 64, 256, 64, 128, 64, 16, 32, 16, 256], np.float64)[:, None]
TILE_COLUMNS = np.array([256, 128, 128, 256, 64, 128, 64, 64, 256, 256, 128, 16], np.float64)[:, None]
"""Base tiles of at most 32,768 accumulators: 128 KiB of fp32 in L0C. float64, shape (tiles, 1)."""
SPLITS = (1, 2, 4, 8)
"""Ways the summed dimension is divided among cores."""
ALIGNMENT_BYTES = 32


CHUNK = 1 << 14
"""Operators priced at once: every tile shape is tried on each, and the columns of all tiles should stay in cache."""


def matmul_ns(rates: Rates, operators: OperatorTable, family: FamilyColumns) -> Float64Array:
    """Returns float64 ns, shape (n,), by the law above."""
    best: Float64Array = np.empty(len(operators), np.float64)
    for start in range(0, len(operators), CHUNK):
        part = slice(start, start + CHUNK)
        some, constants = operators.select(np.arange(len(operators))[part]), family.part(part)
        tried = [_tiled_ns(rates, some, constants, split).min(axis=0) for split in SPLITS]
        best[part] = np.minimum.reduce(tried)
    return np.asarray(family.fixed_ns + best, np.float64)


def _tiled_ns(rates: Rates, operators: OperatorTable, family: FamilyColumns, split: int) -> Float64Array:
    """Returns float64, shape (tiles, n)."""
    m, n, k = (column.astype(np.float64) for column in (operators.m, operators.n, operators.k))
    size = element_bytes(operators)
    rows, columns = np.minimum(TILE_ROWS, _padded(m)), np.minimum(TILE_COLUMNS, _padded(n))
    depth = np.ceil(k / split)
    tiles = operators.batch * np.ceil(m / rows) * np.ceil(n / columns) * split
    unit_depth = np.where(size == 1, 2 * UNIT, UNIT)
    padded_depth = np.ceil(depth / unit_depth) * unit_depth
    matrix_cycles = 2.0 * rows * columns * padded_depth / _flop_per_cycle(rates, operators)
    strips = (rows + columns) * depth * size * _unaligned_slowdown(operators, size, family)
    slower = np.where(operators.transposed, 1.0 + family.block_cycles, 1.0)
    busiest = np.maximum(matrix_cycles / family.cube_ratio, strips / rates.tile_bytes_per_core_cycle)
    core_ns = np.ceil(tiles / rates.core_count) * (busiest * slower + family.row_cycles) / rates.cycles_per_ns
    inputs = operators.read_bytes.astype(np.float64)
    partial = operators.batch * m * n * 8.0 * (split > 1) * split
    again = _read_again(rates, operators, tiles * strips, rows, columns)
    moved = inputs + operators.write_bytes + partial + again * family.traffic_ratio
    memory_ns = moved / (rates.hbm_bytes_per_ns * family.memory_ratio)
    return combined_ns(core_ns, memory_ns, np.broadcast_to(operators.transfer_ns.astype(np.float64), core_ns.shape))


def _read_again(
    rates: Rates,
    operators: OperatorTable,
    alone: Float64Array,
    rows: Float64Array,
    columns: Float64Array,
) -> Float64Array:
    """Returns float64 bytes, shape (tiles, n): strips read from memory more than once.

    Args:
        rates: The device.
        operators: Products.
        alone: Bytes of all strips if every core read its own, shape (tiles, n).
        rows: Rows of a tile.
        columns: Columns of a tile.
    """
    tall = np.minimum(np.sqrt(rates.core_count), np.ceil(operators.m / rows))
    wide = np.minimum(rates.core_count / tall, np.ceil(operators.n / columns))
    wave_share = (tall * rows + wide * columns) / (tall * wide * (rows + columns))
    shared = alone * wave_share
    inputs = operators.read_bytes.astype(np.float64)
    size = element_bytes(operators)
    smaller = np.minimum(operators.m, operators.n) * operators.k * size
    unheld = 1.0 - np.minimum(rates.l2_bytes / np.maximum(smaller, 1.0), 1.0)
    window = rates.l2_bytes / ((tall * rows + wide * columns) * size)
    drifted = 1.0 - np.minimum(window / np.maximum(rates.tile_drift_ratio * operators.k, 1.0), 1.0)
    again = np.maximum(shared - inputs, 0.0) * unheld + np.maximum(alone - np.maximum(shared, inputs), 0.0) * drifted
    return np.asarray(again, np.float64)


def _padded(extent: Float64Array) -> Float64Array:
    return np.asarray(np.ceil(extent / UNIT) * UNIT, np.float64)


def _flop_per_cycle(rates: Rates, operators: OperatorTable) -> Float64Array:
    by_dtype = np.array([rates.device.cube_flop_per_core_cycle(dtype) for dtype in DType], np.float64)
    return by_dtype[operators.dtype]


def _unaligned_slowdown(operators: OperatorTable, size: Float64Array, family: FamilyColumns) -> Float64Array:
    """Rows of the inputs that do not start on 32 bytes are fetched in more and smaller requests."""
    unaligned = (operators.k * size % ALIGNMENT_BYTES != 0) | (operators.n * size % ALIGNMENT_BYTES != 0)
    return np.where(unaligned & (operators.m > 1), 1.0 + family.unaligned_cycles, 1.0)
