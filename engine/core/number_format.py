"""How numbers are shown to people: durations, sizes, shares, counts. One place, so every view says the same."""

from engine.core.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S, NS_PER_US


def format_duration_ns(duration_ns: float) -> str:
    """Returns ``"810.0 ms"``, ``"23.4 µs"``, ``"812 ns"``: three to four significant digits and the unit."""
    magnitude = abs(duration_ns)
    if magnitude < NS_PER_US:
        return f"{duration_ns:.0f} ns"
    for unit, size, limit in (("µs", NS_PER_US, NS_PER_MS), ("ms", NS_PER_MS, NS_PER_S), ("s", NS_PER_S, float("inf"))):
        if magnitude < limit * 0.99995:
            return f"{_four_digits(duration_ns / size)} {unit}"
    message = "unreachable: the last limit is infinite"
    raise AssertionError(message)


def format_bytes(size_bytes: float) -> str:
    """Returns ``"10.04 GiB"``, ``"512 B"``: binary units, named as such."""
    magnitude = abs(size_bytes)
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if magnitude >= size:
            return f"{_four_digits(size_bytes / size)} {unit}"
    return f"{size_bytes:.0f} B"


def format_ratio(ratio: float | None) -> str:
    """Returns ``"39 %"`` (``"3.9 %"`` below ten percent), or ``"–"`` where there is no value."""
    if ratio is None:
        return "–"
    percent = ratio * 100
    return f"{percent:.0f} %" if abs(percent) >= 9.95 or percent == 0 else f"{percent:.1f} %"


def format_count(count: int) -> str:
    """Returns ``"28,010"``."""
    return f"{count:,}"


def _four_digits(value: float) -> str:
    magnitude = abs(value)
    decimals = 0 if magnitude >= 10_000 else 1 if magnitude >= 100 else 2 if magnitude >= 10 else 3
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals == 3 else text
