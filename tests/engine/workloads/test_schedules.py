"""Pipeline schedules: every pass once, in an order every stage can follow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.workloads.scenario import Schedule
from engine.workloads.schedules import Pass, stage_passes


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Schedule, int, int, int]:
    kind = draw(st.sampled_from(list(Schedule)))
    stages = draw(st.integers(1, 6))
    chunks = draw(st.integers(1, 3)) if kind is Schedule.INTERLEAVED else 1
    rounds = draw(st.integers(1, 4))
    return kind, stages, stages * rounds if chunks > 1 else draw(st.integers(1, 12)), chunks


@given(layouts())
def test_every_stage_runs_every_pass_exactly_once_and_forward_first(layout: tuple[Schedule, int, int, int]) -> None:
    kind, stages, micro_batches, chunks = layout
    for stage in range(stages):
        passes = stage_passes(kind, stage, stages, micro_batches, chunks)
        assert len(set(passes)) == len(passes) == 2 * micro_batches * chunks
        place = {item: number for number, item in enumerate(passes)}
        for number in range(micro_batches):
            for chunk in range(chunks):
                assert place[Pass(True, number, chunk)] < place[Pass(False, number, chunk)]


@given(layouts())
def test_the_stages_can_run_their_passes_in_that_order(layout: tuple[Schedule, int, int, int]) -> None:
    kind, stages, micro_batches, chunks = layout
    queues = [list(stage_passes(kind, stage, stages, micro_batches, chunks)) for stage in range(stages)]
    done: set[tuple[bool, int, int]] = set()
    hops = stages * chunks
    moved = True
    while moved:
        moved = False
        for stage, queue in enumerate(queues):
            while queue:
                item = queue[0]
                hop = item.chunk * stages + stage
                if item.is_forward:
                    ready = hop == 0 or (True, item.micro_batch, hop - 1) in done
                else:
                    ready = hop == hops - 1 or (False, item.micro_batch, hop + 1) in done
                if not ready:
                    break
                done.add((item.is_forward, item.micro_batch, hop))
                queue.pop(0)
                moved = True
    assert not any(queues)


@pytest.mark.parametrize(("stage", "warm_up"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_one_forward_one_backward_warms_up_with_the_stages_after_it(stage: int, warm_up: int) -> None:
    passes = stage_passes(Schedule.ONE_FORWARD_ONE_BACKWARD, stage, 4, 8, 1)
    first_backward = next(number for number, item in enumerate(passes) if not item.is_forward)
    assert first_backward == warm_up + 1
