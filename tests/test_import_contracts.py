"""Every import contract is broken once on purpose, in a copy of the tree, and must be seen to fail."""

import itertools
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.captures import REPOSITORY

BREAKS = {
    "The engine does not know the window": ("engine/core/units.py", "import profiler_gui.session"),
    "Floors of the engine": ("engine/trace/trace.py", "import engine.analyses.steps"),
    "Floors of the window": ("profiler_gui/session/__init__.py", "import profiler_gui.window"),
    "The engine runs without Qt": ("engine/core/units.py", "import PySide6"),
    "Panels do not import each other": ("profiler_gui/panels/memory/page.py", "import profiler_gui.panels.overview"),
    "Readers do not import each other": ("engine/formats/kineto/reader.py", "import engine.formats.chrome.reader"),
}


def test_every_contract_has_a_break():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert BREAKS.keys() == {contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    for package in ("engine", "profiler_gui"):
        shutil.copytree(REPOSITORY / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    return root


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True))"
    )
    return subprocess.run(  # noqa: S603 - our own interpreter on our own text
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_tree_keeps_every_contract(tree):
    result = lint(tree)
    assert result.returncode == 0, result.stdout


def upward_imports() -> list[tuple[str, str]]:
    """Returns every floor of the engine with each floor right above it and each neighbour on its own."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [
        [floor.split(" | ") for floor in contract["layers"]]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Floors of the engine"
    ]
    upward = [(low, high) for above, below in itertools.pairwise(layers) for low in below for high in above]
    return upward + [pair for floor in layers for pair in itertools.permutations(floor, 2)]


@pytest.mark.slow
def test_every_floor_of_the_engine_is_kept_from_the_one_above(tree):
    statements: dict[Path, list[str]] = {}
    for low, high in upward_imports():
        statements.setdefault(tree / "engine" / low / "__init__.py", []).append(f"import engine.{high}")
    sources = {path: path.read_text(encoding="utf-8") for path in statements}
    try:
        for path, lines in statements.items():
            path.write_text("\n".join([sources[path], *lines, ""]), encoding="utf-8")
        result = lint(tree)
    finally:
        for path, source in sources.items():
            path.write_text(source, encoding="utf-8")
    missed = [
        (low, high)
        for low, high in upward_imports()
        if f"engine.{low} is not allowed to import engine.{high}:" not in result.stdout
    ]
    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("contract", BREAKS)
def test_a_broken_contract_is_seen(tree, contract):
    path, statement = BREAKS[contract]
    source = (tree / path).read_text(encoding="utf-8")
    try:
        (tree / path).write_text(f"{source}\n{statement}  # noqa\n", encoding="utf-8")
        result = lint(tree)
    finally:
        (tree / path).write_text(source, encoding="utf-8")
    assert result.returncode != 0
    assert f"{contract} BROKEN" in result.stdout
