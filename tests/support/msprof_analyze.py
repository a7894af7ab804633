"""Ascend's own analyzer in an environment of its own, because its dependencies are not ours.

``CANNSCOPE_MSPROF_ANALYZE`` names an installed program; otherwise the pinned package is installed once per run.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "msprof-analyze==26.2.0"


@dataclass(frozen=True)
class MsprofAnalyze:
    """The installed program."""

    program: Path

    def run(self, *arguments: str | Path) -> str:
        """Returns everything it printed; fails the test where it ends with an error or prints one."""
        command = [self.program, *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
        printed = result.stdout + result.stderr
        assert result.returncode == 0, printed
        assert [line for line in printed.splitlines() if re.search(r"\[ERROR\]|Traceback|Error:", line)] == []
        return printed


def installed(root: Path) -> MsprofAnalyze:
    """Returns the program, installing it under ``root`` where none is named; skips the test where that fails."""
    named = os.environ.get("CANNSCOPE_MSPROF_ANALYZE")
    if named:
        return MsprofAnalyze(Path(named))
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)  # noqa: S603 - our own interpreter
    scripts = root / ("Scripts" if os.name == "nt" else "bin")
    done = subprocess.run(  # noqa: S603 - a pinned package
        [scripts / "python", "-m", "pip", "install", "-q", PACKAGE], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"{PACKAGE} cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")
    return MsprofAnalyze(scripts / "msprof-analyze")
