"""Ascend's own analyzer accepts what we write, as it accepts real captures.

It is installed into an environment of its own, because its dependencies are not ours. Set CANNSCOPE_MSPROF_ANALYZE to
an installed ``msprof-analyze`` to use that one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "msprof-analyze==26.2.0"
COMMANDS = (("cluster", "-m", "all"), ("advisor", "all"))


@pytest.fixture(scope="session")
def analyzer(tmp_path_factory) -> Path:
    named = os.environ.get("CANNSCOPE_MSPROF_ANALYZE")
    if named:
        return Path(named)
    root = tmp_path_factory.mktemp("msprof-analyze")
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)  # noqa: S603 - our own interpreter
    scripts = root / ("Scripts" if os.name == "nt" else "bin")
    installed = subprocess.run(  # noqa: S603 - a pinned package
        [scripts / "python", "-m", "pip", "install", "-q", PACKAGE], capture_output=True, text=True, check=False
    )
    if installed.returncode != 0:
        pytest.skip(f"{PACKAGE} cannot be installed here: {installed.stderr.strip().splitlines()[-1:]}")
    return scripts / "msprof-analyze"


def complaints(analyzer: Path, job: Path, command: tuple[str, ...]) -> list[str]:
    result = subprocess.run(  # noqa: S603 - the analyzer under test
        [analyzer, *command, "-d", str(job)], cwd=job.parent, capture_output=True, text=True, check=False, timeout=300
    )
    printed = result.stdout + result.stderr
    wrong = [line for line in printed.splitlines() if re.search(r"\[ERROR\]|Traceback|Error:", line)]
    return wrong if result.returncode == 0 else [f"exit code {result.returncode}", *printed.splitlines()[-20:]]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_it_accepts_a_real_job_without_an_error(analyzer, captures, tmp_path, command):
    job = tmp_path / "job"
    shutil.copytree(captures / "ascend" / "910b-cnn-ddp2-text" / "level1", job)
    for path in [job, *job.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert complaints(analyzer, job, command) == []
