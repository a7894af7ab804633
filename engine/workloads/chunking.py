"""Transfers of tensor groups in pieces, each beside the product of another piece (pipelined chunked communication).

    product → reduction:   product 1, then product 2 beside reduction 1, … , reduction n alone
    gathering → product:   gathering 1 alone, then gathering 2 beside product 1, … , product n

Rows (tokens) are cut in equal pieces. Every piece pays for a call of its own on host and wire, and smaller products use
the device less well, so too many pieces are slower. Only transfers that nothing hides yet are cut. Products of a
router, which is whole on every rank, and of experts are left alone, as MindSpeed's computation over communication does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.collective_kinds import CollectiveKind
from engine.runtime.cost.operators import Law, OperatorTable
from engine.workloads.blocks import LAST, NONE_AWAITED, ONE_BEFORE, Block, GroupKind, MemoryRequest, Operator

_REDUCTIONS = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)


def chunked(block: Block, chunks: int, expert_count: int) -> Block:
    """Returns a block whose exposed transfers of the tensor group run in pieces beside the product next to them.

    Args:
        block: As lowered.
        chunks: Pieces, at least 1.
        expert_count: Of the model: what a router's product has on one of its sides; 0 for none.
    """
    pairs = _pairs(block.operators, expert_count) if chunks > 1 else {}
    if not pairs:
        return block
    pieces = _Pieces()
    at = 0
    while at < len(block.operators):
        if at not in pairs:
            pieces.add(at, block.operators[at])
            at += 1
            continue
        one, other = (_pieces(block.operators[place], chunks) for place in (at, at + 1))
        if pairs[at]:
            _add_product_first(pieces, at, one, other)
        else:
            _add_gathering_first(pieces, at, one, other)
        at += 2
    return Block(block.phase, tuple(pieces.operators), pieces.requests(block.requests))


@dataclass(eq=False)
class _Pieces:
    """Operators so far, with the first and last piece of each operator of the block as lowered."""

    operators: list[Operator] = field(default_factory=list)
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def add(self, origin: int, operator: Operator, awaits: int | None = None) -> None:
        place = len(self.operators)
        self.first.setdefault(origin, place)
        self.last[origin] = place
        self.operators.append(operator if awaits is None else replace(operator, awaits=awaits))

    def requests(self, requests: Sequence[MemoryRequest]) -> tuple[MemoryRequest, ...]:
        """Returns requests moved to the pieces: a tensor is allocated before the first, freed after the last."""
        moved = [
            replace(item, operator=(self.first if item.allocates else self.last)[item.operator]) for item in requests
        ]
        return tuple(sorted(moved, key=lambda item: (item.operator, not item.allocates)))


def _pairs(operators: Sequence[Operator], expert_count: int) -> dict[int, bool]:
    """Returns the first operator of each pair that is cut, and whether that is the product."""
    pairs: dict[int, bool] = {}
    taken: set[int] = set()
    for at in range(len(operators) - 1):
        call = operators[at + 1].collective
        exposed = at + 2 == len(operators) or operators[at + 2].awaits == LAST
        if call is None or call.group is not GroupKind.TENSOR or call.kind not in _REDUCTIONS or not exposed:
            continue
        if _is_cut(operators[at], expert_count):
            pairs[at] = True
            taken |= {at, at + 1}
    for at in range(len(operators) - 1):
        call = operators[at].collective
        if call is None or call.group is not GroupKind.TENSOR or call.kind is not CollectiveKind.ALL_GATHER:
            continue
        product = operators[at + 1]
        if product.awaits == LAST and _is_cut(product, expert_count) and not taken & {at, at + 1}:
            pairs[at] = False
            taken |= {at, at + 1}
    return pairs


def _is_cut(operator: Operator, expert_count: int) -> bool:
    """Returns whether an operator is a product whose rows can be cut."""
    table = operator.table
    if table is None or not (table.law == Law.MATMUL).all() or (table.batch > 1).any():
        return False
    return not expert_count or not any((side == expert_count).any() for side in (table.m, table.n, table.k))


def _add_product_first(pieces: _Pieces, at: int, products: list[Operator], reductions: list[Operator]) -> None:
    for number, (product, reduction) in enumerate(zip(products, reductions, strict=True)):
        pieces.add(at, product, None if number == 0 else NONE_AWAITED)
        pieces.add(at + 1, reduction)


def _add_gathering_first(pieces: _Pieces, at: int, gatherings: list[Operator], products: list[Operator]) -> None:
    """Adds every gathering one ahead of its product, which therefore awaits the last but one."""
    pieces.add(at, gatherings[0])
    for gathering, product in zip(gatherings[1:], products, strict=False):
        pieces.add(at, gathering)
        pieces.add(at + 1, product, ONE_BEFORE)
    pieces.add(at + 1, products[-1], LAST)


def _pieces(operator: Operator, chunks: int) -> list[Operator]:
    """Returns the pieces of a transfer or a product."""
    if operator.collective is not None:
        call = operator.collective
        return [
            replace(operator, collective=replace(call, payload_bytes=part))
            for part in _parts(call.payload_bytes, chunks)
        ]
    table = operator.table
    return [] if table is None else [_product_piece(operator, table, rows) for rows in _parts(table.m, chunks)]


def _parts(whole: Int64Array, chunks: int) -> list[Int64Array]:
    return [np.asarray(whole // chunks + (number < whole % chunks), np.int64) for number in range(chunks)]


def _product_piece(operator: Operator, table: OperatorTable, rows: Int64Array) -> Operator:
    """Returns the product of some rows: its share of the first operand and the result, the whole second operand."""
    element_bytes = table.read_bytes // np.maximum(table.m * table.k + table.k * table.n, 1)
    read = table.read_bytes - (table.m - rows) * table.k * element_bytes
    written = table.write_bytes // np.maximum(table.m, 1) * rows
    part = replace(table, m=rows, read_bytes=read, write_bytes=written)
    _, comma, rest = operator.shape.partition(",")
    shape = f"{int(rows[0])}{comma}{rest}" if comma else operator.shape
    return replace(operator, table=part, shape=shape)
