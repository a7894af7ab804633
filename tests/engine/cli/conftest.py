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
