import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.formats.ascend.kernel_join import match_kernels
from engine.formats.ascend.kernels import KernelRows
from engine.trace.tables import KernelTable, empty_columns


def table(name: list[int], start_ns: list[int], stream: list[int]) -> KernelRows:
    count = len(name)
    columns = {key: np.full(count, -1, dtype=np.int32) for key in empty_columns(KernelTable)}
    return KernelRows(
        start_ns=np.array(start_ns, dtype=np.int64),
        duration_ns=np.ones(count, dtype=np.int64),
        name=np.array(name, dtype=np.int32),
        stream=np.array(stream, dtype=np.int64),
        device=np.zeros(count, dtype=np.int32),
        is_communication=np.array(stream, dtype=np.int64) < 0,
        row=np.arange(count, dtype=np.int64),
        table=KernelTable(**columns),
    )


def match(rows: list[tuple[int, int, int]], events: list[tuple[int, int, int]]) -> list[int]:
    """Matches (name, start, stream) triples."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*events, strict=True)] or [np.empty(0, np.int64)] * 3
    kernels = table(*([list(column) for column in zip(*rows, strict=True)] or [[], [], []]))
    return match_kernels(kernels, columns[0].astype(np.int32), columns[1], columns[2]).tolist()


EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(-1, 2)), unique=True, max_size=40)


@given(EVENTS, st.randoms(use_true_random=False))
def test_a_table_in_any_order_meets_exactly_its_events(events: list[tuple[int, int, int]], random: object) -> None:
    rows = list(range(len(events)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert match([events[row] for row in rows], events) == rows


@given(EVENTS, st.data())
def test_a_start_may_differ_by_one_ns(events: list[tuple[int, int, int]], data: st.DataObject) -> None:
    far_apart = [(name, start * 5, stream) for name, start, stream in events]
    rows = [(name, start + data.draw(st.integers(-1, 1)), stream) for name, start, stream in far_apart]
    assert match(rows, far_apart) == list(range(len(events)))


@given(EVENTS, EVENTS)
def test_no_event_is_given_twice_and_names_always_agree(
    rows: list[tuple[int, int, int]], events: list[tuple[int, int, int]]
) -> None:
    found = match(rows, events)
    given_out = [event for event in found if event >= 0]
    assert len(set(given_out)) == len(given_out)
    assert all(event < 0 or events[event][0] == row[0] for row, event in zip(rows, found, strict=True))


def test_a_table_without_streams_meets_by_name_and_start() -> None:
    assert match([(1, 10, -1), (2, 20, -1)], [(2, 20, 7), (1, 10, 3)]) == [1, 0]


def test_rounded_starts_meet_by_stream_and_order() -> None:
    events = [(1, 100, 3), (1, 200, 4), (1, 300, 3)]
    assert match([(1, 0, 3), (1, 0, 3), (1, 0, 4)], events) == [0, 2, 1]


def test_unequal_numbers_are_not_guessed() -> None:
    assert match([(1, 0, 3)], [(1, 100, 3), (1, 300, 3)]) == [-1]
