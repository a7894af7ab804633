"""A command as a script calls it."""

import pytest

from engine.cli.app import build_cli, run


@pytest.fixture
def cannscope(capsys):
    """Returns what runs a command and gives (exit code, stdout, stderr)."""

    def call(*arguments):
        code = run(build_cli(), [str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def job(request, tmp_path):
    """Returns the file of the scenario that the module of a test names ``JOB``."""
    path = tmp_path / "job.toml"
    path.write_text(request.module.JOB, encoding="utf-8")
    return path
