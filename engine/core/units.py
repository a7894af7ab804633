"""Conversions between the units of files and the engine's ns, bytes and ratios. Rounding, never truncation."""

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
MAX_TIME_NS = 3 << 60
MAX_DURATION_NS = 1 << 60
"""What a file may state (to the year 2079, for 36 years): differences and ends of such times never leave int64."""
MAX_US_DIGITS = 15
"""Times of more digits do not fit int64 ns; epoch µs have 16 (``adjusted()`` 15)."""


def us_text_to_ns(text: str) -> int:
    """Returns the integer ns of decimal µs ``text``, exactly.

    ``"1736412474714258.990"`` has more digits than a float64 holds, so the text is never converted through one.
    Surrounding blanks and tabs are ignored. Raises ValueError if the text is not a finite decimal number.
    """
    stripped = text.strip()
    whole, _, fraction = stripped.partition(".")
    if whole.isdecimal() and len(fraction) <= 3 and (not fraction or fraction.isdecimal()):
        return int(whole) * NS_PER_US + int(fraction.ljust(3, "0"))
    try:
        value_us = Decimal(stripped)
    except InvalidOperation:
        value_us = Decimal("NaN")
    if not value_us.is_finite() or value_us.adjusted() > MAX_US_DIGITS:
        message = f"not a time in µs: {text!r}"
        raise ValueError(message)
    return int((value_us * NS_PER_US).to_integral_value(rounding=ROUND_HALF_EVEN))


def ns_to_us(ns: int) -> float:
    """Returns µs for text and files; exact to the ns below 2**53 ns."""
    return int(ns) / NS_PER_US
