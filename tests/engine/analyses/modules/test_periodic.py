import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.modules.periodic import repetitions


def stacks(text: str) -> list[str]:
    codes = np.array([ord(letter) for letter in text], dtype=np.int32)
    return [
        f"{item.copies} x {text[item.start : item.start + item.period]} at {item.start}" for item in repetitions(codes)
    ]


def test_equal_layers_are_found_with_their_number():
    assert stacks("xyz" + "ABCDE" * 4 + "uvw") == ["4 x ABCDE at 3"]


def test_two_copies_are_no_stack():
    assert stacks("xyz" + "ABCDE" * 2 + "uvw") == []


def test_loops_over_tensors_are_no_layers():
    assert stacks("AB" * 30 + "x" + "CDE" * 30 + "y" + "F" * 30) == []


def test_a_micro_batch_is_taken_apart_into_its_layers():
    step = "h" + "ABCDEF" * 4 + "mn" + "GHIJKLM" * 4 + "z"
    found = stacks(step * 5)
    assert [item.partition(" at ")[0] for item in found] == ["4 x ABCDEF", "4 x GHIJKLM"] * 5
    assert found[0].endswith("at 1")
    assert found[1].endswith("at 27")


def test_a_library_that_chose_another_kernel_once_does_not_end_the_stack():
    layer = "ABCDEFGHIJKLMNOPQRST"
    assert stacks(layer * 3 + layer.replace("J", "j") + layer * 3) == [f"7 x {layer} at 0"]


def test_a_stack_does_not_take_the_last_kernel_of_the_one_before():
    assert stacks("CABDE" * 4 + "EFGHIJ" * 4) == ["4 x CABDE at 0", "4 x EFGHIJ at 20"]


@given(st.integers(5, 30), st.integers(3, 9), st.integers(0, 12), st.integers(0, 12))
def test_a_stack_of_distinct_kernels_is_always_recovered(period, copies, before, after):
    layer = np.arange(period)
    codes = np.concatenate((1000 + np.arange(before), np.tile(layer, copies), 2000 + np.arange(after)))
    (found,) = repetitions(codes.astype(np.int32))
    assert (found.start, found.period, found.copies) == (before, period, copies)


@given(st.lists(st.integers(0, 4), max_size=200))
def test_stacks_are_disjoint_and_inside_the_sequence(codes):
    reached = 0
    for item in repetitions(np.array(codes, dtype=np.int32)):
        assert item.start >= reached
        assert item.copies >= 3
        assert item.period >= 5
        reached = item.end
    assert reached <= len(codes)
