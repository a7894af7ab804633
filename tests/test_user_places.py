"""What the product keeps for its user, as tests see it."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.bench import history_path


@pytest.mark.skipif(sys.platform == "win32", reason="no variable moves a user's directory on Windows")
def test_no_test_and_no_process_it_starts_writes_where_the_user_keeps_things(tmp_path: Path) -> None:
    program = "from engine.cli.bench import history_path; print(history_path(), end='')"
    started = subprocess.run(  # noqa: S603 - our own interpreter on our own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert {history_path(), Path(started.stdout)} == {tmp_path / "data" / "cannscope" / "bench.sqlite"}
