"""Ascend's own analysis tool, installed in an environment of its own; ``CANNSCOPE_MSPROF_ANALYZE`` names it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def msprof_analyze(*arguments: str | Path) -> str:
    """Runs the tool and returns everything it printed; skips the test where it is not installed."""
    program = os.environ.get("CANNSCOPE_MSPROF_ANALYZE") or shutil.which("msprof-analyze")
    if not program:
        pytest.skip("no msprof-analyze: install it in an environment of its own and set CANNSCOPE_MSPROF_ANALYZE")
    command = [program, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr
