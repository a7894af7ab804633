"""Frames of the timeline at 10 million events on 40 tracks, through the real paint path, names on."""

import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from tests.support.timeline import Stage, stage_of

TRACKS = 40
EVENTS_PER_TRACK = 250_000
NAMES = 20_000
FRAMES = 150
LIMIT_MS = 8.0
ROUNDS = 3
SCENARIOS = ("all", "one tenth", "one hundredth", "600 events", "zoom sweep")


def ten_million_events() -> Trace:
    """Host threads with nested calls and device streams; deterministic."""
    random = np.random.default_rng(20)
    builder = TraceBuilder()
    names = np.array([builder.strings.intern(f"aten::operator_{index}_backward") for index in range(NAMES)], np.int32)
    categories = [builder.strings.intern(text) for text in ("cpu_op", "kernel")]
    for track in range(TRACKS):
        is_host = track % 4 == 0
        kind = TrackKind.HOST_THREAD if is_host else TrackKind.DEVICE_STREAM
        index = builder.add_track(Track(kind, f"track {track}", stream=-1 if is_host else track, device=0))
        outer = EVENTS_PER_TRACK // (2 if is_host else 1)
        duration_ns = random.exponential(3000, outer).astype(np.int64) + 4
        gap_ns = random.exponential(1500, outer).astype(np.int64)
        if not is_host:
            duration_ns, gap_ns = duration_ns // 2, gap_ns // 2
        start_ns = np.cumsum(duration_ns + gap_ns) - duration_ns
        batches = [(start_ns, duration_ns)]
        if is_host:
            batches.append((start_ns + duration_ns // 4, duration_ns // 2))
        for starts_ns, durations_ns in batches:
            name = names[random.integers(0, NAMES, len(starts_ns))]
            builder.add_events(
                start_ns=starts_ns,
                duration_ns=durations_ns,
                track=index,
                name=name,
                category=categories[0 if is_host else 1],
            )
    return builder.build(
        origin=Origin.SIMULATED, source=Source("synthetic", "none"), metadata=TraceMetadata(), clock_is_unix=False
    )


@pytest.fixture(scope="module")
def trace() -> Trace:
    return ten_million_events()


@pytest.fixture
def stage(trace: Trace, qapp: QApplication, tmp_path) -> Iterator[Stage]:
    stage = stage_of(trace, tmp_path, width_px=1920 + 260, height_px=1080 + 160)
    stage.view.canvas.setFixedSize(1920, 1080)
    stage.settle()
    yield stage
    stage.close()


def frame_times_ms(stage: Stage, views: list[tuple[int, int]]) -> np.ndarray:
    """Returns how long each view takes to paint into an image, by the widget's own paint event.

    The processor time of the painting thread counts (painting waits for nothing), so that other programs on a shared
    machine do not.
    """
    canvas = stage.view.canvas
    image = QImage(1920, 1080, QImage.Format.Format_RGB32)
    times = []
    for start_ns, end_ns in views:
        stage.session.show_range(start_ns, end_ns, "benchmark")
        begin = time.thread_time()
        canvas.render(image)
        times.append((time.thread_time() - begin) * 1e3)
    return np.array(times)


def views_of(stage: Stage, scenario: str) -> list[tuple[int, int]]:
    limits = stage.session.limits
    whole_ns = limits.duration_ns
    random = np.random.default_rng(7)
    shares = {"all": 0.95, "one tenth": 0.1, "one hundredth": 0.01, "600 events": 600 / (TRACKS * EVENTS_PER_TRACK)}
    if scenario in shares:
        # A slow pan: what a hand on the keys or the mouse asks for, frame after frame.
        width_ns = int(whole_ns * shares[scenario])
        first_ns = int(random.integers(0, max(whole_ns // 3, 1))) if scenario != "all" else 0
        step_ns = max(width_ns // 60, 1) if scenario != "all" else int(whole_ns * 0.05 / FRAMES)
        return [(first_ns + index * step_ns, first_ns + index * step_ns + width_ns) for index in range(FRAMES)]
    middle_ns = whole_ns // 2
    widths_ns = np.geomspace(whole_ns, shares["600 events"] * whole_ns, FRAMES).astype(np.int64).tolist()
    return [(middle_ns - width_ns // 2, middle_ns + width_ns // 2 + 1) for width_ns in widths_ns]


@pytest.mark.benchmark
def test_every_frame_of_ten_million_events_is_painted_within_eight_milliseconds(stage, capsys):
    """The best of rounds taken in turn counts: a shared machine's speed drifts by more than half within a minute."""
    rounds = {scenario: [] for scenario in SCENARIOS}
    for _ in range(ROUNDS):
        for scenario, figures in rounds.items():
            views = views_of(stage, scenario)
            frame_times_ms(stage, views[:3])
            p50_ms, p99_ms = np.percentile(frame_times_ms(stage, views), [50, 99])
            figures.append((p99_ms, p50_ms))
    with capsys.disabled():
        for scenario, figures in rounds.items():
            p99_ms, p50_ms = min(figures)
            seen = ", ".join(f"{figure[0]:.2f}" for figure in figures)
            sys.stdout.write(
                f"\n{scenario:14} p50 {p50_ms:5.2f} ms   p99 {p99_ms:5.2f} ms   (p99 of the rounds: {seen})"
            )
    assert [scenario for scenario, figures in rounds.items() if min(figures)[0] > LIMIT_MS] == []
