"""Numbers as the profiler writes them."""

from engine.core.units import NS_PER_US


def us_text(ns: int) -> str:
    """Returns µs with exactly three decimals."""
    sign, magnitude = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{magnitude // NS_PER_US}.{magnitude % NS_PER_US:03d}"


def number_text(value: float) -> str:
    """Returns a number of a table, without a decimal point where it is whole; "" for what is no number."""
    if value != value:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
