import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.fusion.frequent_sequences import MIN_COUNT, frequent_sequences


def sequences(text: str, breaks: str = "|", durations: list[int] | None = None) -> dict[str, int]:
    """Returns name → count for a stream drawn as letters."""
    codes = np.array([ord(letter) for letter in text], dtype=np.int32)
    lengths = np.array(durations or [10] * len(text), dtype=np.int64)
    cuts = np.array([letter in breaks for letter in text], dtype=np.bool_)
    found = frequent_sequences(codes, lengths, cuts, int(lengths.sum()))
    return {"".join(map(chr, item.codes)): len(item.first) for item in found}


def test_the_longest_sequence_that_covers_the_time_is_reported_alone():
    assert sequences("ABCD|" * 6) == {"ABCD": 6}


def test_five_times_is_not_frequent():
    assert sequences("ABCD|" * 5) == {}


def test_a_sequence_that_repeats_itself_is_reported_as_its_period():
    assert sequences("ABABABABABABAB") == {"AB": 7}


def test_a_run_of_one_kernel_is_no_sequence():
    assert sequences("A" * 50) == {}


def test_less_than_one_percent_of_the_time_is_not_reported():
    durations = [1, 1, 1000] * 8
    assert sequences("AB|" * 8, durations=durations) == {}


def test_the_sequence_that_covers_most_time_takes_its_kernels():
    assert sequences("ABC|" * 7 + "AB|" * 7) == {"AB": 14}
    assert sequences("ABC|" * 7 + "AB|" * 2) == {"ABC": 7}


def test_what_is_shorter_than_a_sequence_or_takes_no_time_has_none():
    assert sequences("A") == {}
    assert sequences("AB") == {}
    assert sequences("AB|" * 9, durations=[0] * 27) == {}


def test_sequences_do_not_cross_what_breaks_them():
    assert sequences("A|B" * 10) == {"BA": 9}


@given(st.text(alphabet="ABC|", max_size=120))
def test_places_never_overlap_and_always_hold_the_sequence(text):
    codes = np.array([ord(letter) for letter in text], dtype=np.int32)
    durations = np.full(len(text), 7, dtype=np.int64)
    breaks = codes == ord("|")
    used = np.zeros(len(text), dtype=np.int64)
    for item in frequent_sequences(codes, durations, breaks, int(durations.sum())):
        assert len(item.first) >= MIN_COUNT
        assert item.total_ns == 7 * len(item.codes) * len(item.first)
        for first in item.first.tolist():
            place = slice(first, first + len(item.codes))
            assert tuple(codes[place].tolist()) == item.codes
            used[place] += 1
    assert used.max(initial=0) <= 1
    assert not np.any(used[breaks])
