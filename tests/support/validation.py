"""Where the published measurements are. Tests that need them ask for the ``validation`` fixture and skip elsewhere."""

import os
from pathlib import Path

from tests.support.captures import captures_directory


def validation_tables() -> Path | None:
    """Returns ``CANNSCOPE_VALIDATION``, else ``reference/validation`` beside the captures, whichever exists."""
    named = os.environ.get("CANNSCOPE_VALIDATION")
    captures = captures_directory()
    candidates = [Path(named)] if named else [captures.parent / "reference" / "validation"] if captures else []
    return next((path for path in candidates if path.is_dir()), None)
