"""Surroundings of panes, and the real captures they are shown with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from profiler_gui.session.document import Document
from tests.support.panes import PaneWorld, captured, pane_world


@pytest.fixture
def world(qapp: QApplication, tmp_path: Path) -> Iterator[PaneWorld]:
    """What a pane gets, and which panes were asked for."""
    made = pane_world(qapp, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def qwen3(captures: Path) -> Document:
    """The four-rank Qwen3 job."""
    return captured(captures / "ascend" / "910b-qwen3-0.6b-pp2dp2")


@pytest.fixture(scope="session")
def cnn(captures: Path) -> Document:
    """One rank of an eight-rank job: its collectives stay unsplit."""
    return captured(captures / "ascend" / "910b-cnn-ddp2-text" / "level1" / "rank0_ascend_pt")


@pytest.fixture(scope="session")
def alexnet(captures: Path) -> Document:
    """A capture without communication, steps and memory."""
    return captured(captures / "pytorch" / "alexnet.json.gz")


@pytest.fixture(scope="session")
def gloo(captures: Path) -> Document:
    """Four ranks without a device, whose collectives run at the same time as each other."""
    return captured(captures / "pytorch" / "gpt-cpu" / "ddp4_gloo")
