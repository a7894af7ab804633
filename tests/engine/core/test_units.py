from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from engine.core.units import us_text_to_ns


@given(st.integers(0, 2**62))
def test_every_nanosecond_survives_the_text_of_microseconds(ns):
    assert us_text_to_ns(f"{ns // 1000}.{ns % 1000:03d}") == ns
    assert us_text_to_ns(f" {ns // 1000}.{ns % 1000:03d}\t") == ns


@given(st.decimals(0, 10**6, places=7))
def test_more_digits_are_rounded_to_the_nearest(us):
    assert abs(Decimal(us_text_to_ns(str(us))) - us * 1000) <= Decimal("0.5")


@pytest.mark.parametrize("text", ["", "N/A", "1.2.3", "nan", "inf", "0x10", "1e999999999"])
def test_what_is_no_time_says_so(text):
    with pytest.raises(ValueError, match="not a time"):
        us_text_to_ns(text)


def test_numbers_as_people_read_them():
    assert format_duration_ns(810_022_000) == "810.0 ms"
    assert format_duration_ns(23_400) == "23.40 µs"
    assert format_duration_ns(999_999_999) == "1 s"
    assert format_duration_ns(12) == "12 ns"
    assert format_bytes(10_282.75 * 2**20) == "10.04 GiB"
    assert format_bytes(512) == "512 B"
    assert format_ratio(0.391) == "39 %"
    assert format_ratio(0.039) == "3.9 %"
    assert format_ratio(None) == "–"
