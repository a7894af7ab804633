"""Where the real captures are. Tests that need them ask for the ``captures`` fixture and skip where there are none."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def captures_directory() -> Path | None:
    """Returns ``CANNSCOPE_CAPTURES`` or ``../shared/captures``, whichever exists."""
    named = os.environ.get("CANNSCOPE_CAPTURES")
    candidates = [Path(named)] if named else [REPOSITORY.parent / "shared" / "captures"]
    return next((path for path in candidates if path.is_dir()), None)


def expected_directory() -> Path | None:
    """Returns the folder of reference values that stands beside the captures."""
    captures = captures_directory()
    expected = captures.parent / "expected" if captures else None
    return expected if expected is not None and expected.is_dir() else None
