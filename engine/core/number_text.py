"""Numbers that files write as text: ids of processes, streams, devices, steps."""

MAX_ID_DIGITS = 9
"""What surely fits int32."""
MAX_INT64_DIGITS = 18


def digits_to_int(text: str, otherwise: int, max_digits: int = MAX_ID_DIGITS) -> int:
    """Returns the number in ``text``; ``otherwise`` where it is not at most ``max_digits`` decimal digits."""
    return int(text) if text.isdecimal() and len(text) <= max_digits else otherwise
