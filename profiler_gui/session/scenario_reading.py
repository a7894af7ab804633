"""Reading a scenario file in the window: what is wrong with it is said, not raised."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiler_gui.session.failure import Failure
from profiler_gui.toolkit.translations import tr

SERVING, TRAINING = "serving", "training"
"""Kinds of scenarios."""


def read_document(path: Path, fail: Callable[[Failure], object]) -> dict[str, Any] | None:
    """Returns a scenario as a parsed TOML file; None, and tells ``fail``, where it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(Failure(tr("the file cannot be read"), str(path), error.strerror or str(error)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(Failure(tr("this is no TOML file"), str(path), str(error)))
    return None
