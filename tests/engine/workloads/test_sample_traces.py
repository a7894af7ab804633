"""The shipped captures are what the shipped scenarios give."""

import re
from pathlib import Path

import pytest

from engine.cli.app import build_cli, run

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_traces"
COMMAND = re.compile(r"`cannscope (simulate [^`]+ -o (sample_traces/\w+))`")
COMMANDS = {match[2]: match[1].split() for match in COMMAND.finditer((SAMPLES / "README.md").read_text())}
SLOW = "sample_traces/fragmentation_slowdown"
MOST_BYTES = 3_000_000


def regenerated(directory: str, out: Path) -> None:
    arguments = [str(ROOT / word) if word.endswith(".toml") else word for word in COMMANDS[directory]]
    arguments[arguments.index(directory)] = str(out)
    assert run(build_cli(), [*arguments, "-q"]) == 0


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "directory", [pytest.param(name, marks=pytest.mark.slow) if name == SLOW else name for name in COMMANDS]
)
def test_a_sample_is_what_its_command_writes(directory: str, tmp_path: Path) -> None:
    regenerated(directory, tmp_path / "out")
    written, shipped = files_of(tmp_path / "out"), files_of(ROOT / directory)
    assert written.keys() == shipped.keys()
    assert [name for name in written if written[name] != shipped[name]] == []


def test_every_shipped_sample_has_its_command() -> None:
    assert sorted(COMMANDS) == sorted(f"sample_traces/{item.name}" for item in SAMPLES.iterdir() if item.is_dir())


def test_the_samples_are_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) <= MOST_BYTES
