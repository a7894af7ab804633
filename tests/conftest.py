"""Fixtures for every test: captures, isolated settings, and the offscreen platform."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.captures import captures_directory, expected_directory
from tests.support.msprof_analyze import MsprofAnalyze, installed

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
settings.register_profile("default", deadline=None)
settings.load_profile("default")


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
def msprof_analyze(tmp_path_factory: pytest.TempPathFactory) -> MsprofAnalyze:
    return installed(tmp_path_factory.mktemp("msprof-analyze"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"qtbot", "qapp"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("gui")
