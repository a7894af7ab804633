"""Fixtures for every test: captures, isolated settings, and the offscreen platform."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.captures import captures_directory, expected_directory
from tests.support.msprof_analyze import MsprofAnalyze, installed
from tests.support.user_places import move_user_places
from tests.support.validation import validation_tables

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
settings.register_profile("default", deadline=None)
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def places_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps fixtures that live longer than one test out of the user's directories."""
    with pytest.MonkeyPatch.context() as patch:
        move_user_places(patch, tmp_path_factory.mktemp("places"))
        yield


@pytest.fixture(autouse=True)
def places_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps caches, settings, histories and logs of a test inside its own directory."""
    move_user_places(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def captures() -> Path:
    directory = captures_directory()
    if directory is None:
        pytest.skip("no captures: set CANNSCOPE_CAPTURES or put them in ../shared/captures")
    return directory


@pytest.fixture(scope="session")
def expected() -> Path:
    directory = expected_directory()
    if directory is None:
        pytest.skip("no reference values beside the captures")
    return directory


@pytest.fixture(scope="session")
def validation() -> Path:
    directory = validation_tables()
    if directory is None:
        pytest.skip("no published measurements: set CANNSCOPE_VALIDATION or put them beside the captures")
    return directory


@pytest.fixture(scope="session")
def msprof_analyze(tmp_path_factory: pytest.TempPathFactory) -> MsprofAnalyze:
    return installed(tmp_path_factory.mktemp("msprof-analyze"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"qtbot", "qapp"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("gui")
