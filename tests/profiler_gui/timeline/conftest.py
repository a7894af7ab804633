"""A timeline on the stage."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.trace import Trace
from tests.support.timeline import Stage, stage_of


@pytest.fixture
def show(qapp, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Shows traces and waits until they are drawn; closes the view after the test."""
    stages: list[Stage] = []

    def open_stage(traces: Trace | list[Trace], **options: Any) -> Stage:
        stage = stage_of(traces, tmp_path, **options)
        stages.append(stage)
        stage.settle()
        return stage

    yield open_stage
    for stage in stages:
        stage.close()
