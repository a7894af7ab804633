"""Ascend's own analyzer accepts real captures without an error: the control for what we write ourselves."""

import shutil

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("command", [("cluster", "-m", "all"), ("advisor", "all")], ids=lambda command: command[0])
def test_it_accepts_a_real_job_without_an_error(msprof_analyze, captures, tmp_path, command):
    job = tmp_path / "job"
    shutil.copytree(captures / "ascend" / "910b-cnn-ddp2-text" / "level1", job)
    for path in [job, *job.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    msprof_analyze.run(*command, "-d", job, "-o", tmp_path / "result")
