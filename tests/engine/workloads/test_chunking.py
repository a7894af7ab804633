"""Transfers in pieces: work, bytes and memory of a block stay what they were."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.collective_kinds import CollectiveKind
from engine.workloads.blocks import Block, GroupKind
from engine.workloads.chunking import chunked
from engine.workloads.program import lowering_of, step_blocks
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.sequence_lengths import draw_lengths


def blocks(experts: int = 0, overlaps: bool = False) -> dict[str, Block]:
    model = {"layers": 2, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 32000}
    optimizations = {"fusion.attention": {}} | ({"communication.overlap_tensor_parallel": {}} if overlaps else {})
    document = {
        "model": {**model, "experts": experts, "top_k": 2} if experts else model,
        "device": {"preset": "910b2", "count": 4},
        "parallel": {"tensor": 4},
        "batch": {
            "micro": 1,
            "global": 2,
            "sequence_length": {"distribution": "uniform", "mean": 1000, "min": 512, "max": 2048},
        },
        "optimizations": optimizations,
    }
    scenario = scenario_from_document(document, Path())
    return step_blocks(scenario, lowering_of(scenario, draw_lengths(scenario, 1).known))


DENSE, ROUTED, HIDDEN = blocks(), blocks(experts=8), blocks(overlaps=True)
NAMES = st.sampled_from(sorted(DENSE))


def transferred(block: Block) -> dict[CollectiveKind, list[int]]:
    totals: dict[CollectiveKind, list[int]] = {}
    for item in block.operators:
        if item.collective is not None:
            old = totals.get(item.collective.kind, [0] * len(item.collective.payload_bytes))
            totals[item.collective.kind] = (item.collective.payload_bytes + old).tolist()
    return totals


def flop(block: Block) -> list[int]:
    return [int(value) for value in sum(item.table.flop for item in block.operators if item.table is not None)]


@given(NAMES, st.integers(1, 16))
def test_pieces_add_up_to_the_whole(name: str, chunks: int) -> None:
    block = DENSE[name]
    cut = chunked(block, chunks, 0)
    assert transferred(cut) == transferred(block)
    assert flop(cut) == flop(block)
    assert len(cut.requests) == len(block.requests)
    wrote = [sum(item.table.write_bytes for item in part.operators if item.table) for part in (block, cut)]
    assert wrote[0].tolist() == wrote[1].tolist()


@given(NAMES, st.integers(2, 16))
def test_tensors_live_as_long_as_all_pieces_that_use_them(name: str, chunks: int) -> None:
    block = DENSE[name]
    cut = chunked(block, chunks, 0)
    places = [item.operator for item in cut.requests]
    assert places == sorted(places)
    held: set[str] = set()
    for item in cut.requests:
        if item.allocates:
            assert item.tensor not in held
            held.add(item.tensor)
        else:
            held.discard(item.tensor)
    assert held == {item.tensor for item in block.requests if item.allocates} - {
        item.tensor for item in block.requests if not item.allocates
    }


def calls(block: Block) -> int:
    return sum(item.collective is not None and item.collective.group is GroupKind.TENSOR for item in block.operators)


@pytest.mark.parametrize("chunks", [2, 4])
def test_every_exposed_transfer_beside_a_product_is_cut(chunks: int) -> None:
    forward, backward = DENSE["layer.forward.0"], DENSE["layer.backward.0"]
    assert calls(chunked(forward, chunks, 0)) == chunks * calls(forward) == chunks * 4
    # Backward: two gatherings before products and two reductions after; inputs gathered again stay whole.
    assert calls(chunked(backward, chunks, 0)) == 4 * chunks + 2


def test_what_is_hidden_already_stays_whole() -> None:
    backward = HIDDEN["layer.backward.0"]
    assert calls(chunked(backward, 4, 0)) == calls(backward) + 2 * 3


def test_routers_and_experts_stay_whole() -> None:
    forward = ROUTED["layer.forward.0"]
    cut = chunked(forward, 4, 8)
    assert calls(cut) == calls(forward) + 2 * 3
    assert sum(item.name == "GroupedMatmul" for item in cut.operators) == 2


def test_one_chunk_is_the_block_itself() -> None:
    assert chunked(DENSE["layer.forward.0"], 1, 0) is DENSE["layer.forward.0"]
