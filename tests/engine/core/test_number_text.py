import pytest

from engine.core.number_text import MAX_INT64_DIGITS, digits_to_int


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x1", "1" * 10, "9" * 5000, " 1"])
def test_what_is_no_short_number_is_left_to_the_caller(text):
    assert digits_to_int(text, -7) == -7


def test_digits_are_read_up_to_the_length_that_fits():
    assert digits_to_int("00042", -1) == 42
    assert digits_to_int("9" * MAX_INT64_DIGITS, -1, MAX_INT64_DIGITS) == 10**18 - 1
