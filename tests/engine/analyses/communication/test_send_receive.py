"""Sends meet receives: by number where both sides count alike, else k-th by k-th in each direction."""

from pathlib import Path

import numpy as np
import pytest

from engine.analyses.communication import JobCommunication, communication
from engine.optimizations.fusion.attention import ATTENTION
from engine.optimizations.interface import Bound, CapturePlan
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.trace.job import Job
from engine.workloads.scenario_file import scenario_from_document
from tests.engine.analyses.communication.test_communication import US, analysed, job_of
from tests.support.closed_loop import SimulatedRecording, recorded

SEND, RECEIVE = "hcom_send__612_{}_1", "hcom_receive__612_{}_1"
MODEL = {"layers": 8, "hidden": 1024, "ffn": 2816, "heads": 8, "vocab": 4000}


def names(**letters: str) -> dict[str, str]:
    """Returns letters → names: ``A="s0"`` is the side's first call, a send."""
    forms = {"s": SEND, "r": RECEIVE}
    return {letter: forms[text[0]].format(text[1:]) for letter, text in letters.items()}


def met(result: JobCommunication, rank: int) -> list[tuple[str, int | None]]:
    return [(item.name.split("__")[0], item.wait_ns) for item in result.collectives[rank]]


def test_calls_in_different_orders_meet_end_by_end_not_number_by_number() -> None:
    spelled = names(A="s0", B="r1", C="r0", D="s1")
    result = analysed(job_of("comm 612 | AAAA..BBB |", "comm 612 | ..DDDDDDD |\n comm 612 | ...C |", names=spelled))
    assert met(result, 0) == [("hcom_send", 3 * US), ("hcom_receive", 0)]
    assert met(result, 1) == [("hcom_send", 4 * US), ("hcom_receive", 0)]


def test_sends_never_meet_sends() -> None:
    spelled = names(A="s0", B="s1")
    result = analysed(job_of("comm 612 | AAA.BB |", "comm 612 | .AA.BB |", names=spelled))
    assert {wait for rank in (0, 1) for _, wait in met(result, rank)} == {None}
    assert [(item.code, item.count) for item in result.diagnostics] == [("unpaired-collectives", 4)]


def test_equal_numbers_tell_who_meets_whom_where_one_capture_began_earlier() -> None:
    spelled = names(A="s3", B="s4", C="r4")
    result = analysed(job_of("comm 612 | AAA.BBBB |", "comm 612 | .......C |", names=spelled))
    assert met(result, 0) == [("hcom_send", None), ("hcom_send", 3 * US)]
    assert met(result, 1) == [("hcom_receive", 0)]


def test_a_direction_whose_counts_differ_stays_unsplit_and_the_other_does_not() -> None:
    spelled = names(A="s0", B="r1", C="s2", D="s0", E="r1")
    result = analysed(job_of("comm 612 | AAA.BB.CC |", "comm 612 | ....DD.EE |", names=spelled))
    assert met(result, 0) == [("hcom_send", None), ("hcom_receive", 0), ("hcom_send", None)]
    assert [(item.code, item.count) for item in result.diagnostics] == [("unpaired-collectives", 3)]


def test_what_arrived_before_it_was_sent_was_another_message() -> None:
    spelled = names(A="s0", B="r0")
    result = analysed(job_of(f"comm 612 | {'.' * 500}AAAA |", "comm 612 | BBBB |", names=spelled))
    assert {wait for rank in (0, 1) for _, wait in met(result, rank)} == {None}


def test_unnumbered_sends_and_receives_of_both_directions_meet_too() -> None:
    spelled = {"A": "gloo:send", "B": "gloo:recv"}
    result = analysed(job_of("host 1 | AAAA.BBB |", "host 2 | ...B |\n host 3 | ..AAAAAA |", names=spelled))
    assert [item.wait_ns for item in result.collectives[0]] == [3 * US, 0]
    assert [item.wait_ns for item in result.collectives[1]] == [3 * US, 0]


def staged(stages: int, schedule: str, chunks: int) -> SimulatedRecording:
    parallel = {"pipeline": stages, "schedule": schedule, "virtual_pipeline": chunks}
    batch = {"global": stages, "micro": 1, "sequence_length": 2048}
    device = {"preset": "910b2", "count": stages}
    document = {"name": "staged", "model": MODEL, "device": device, "parallel": parallel, "batch": batch}
    return recorded(scenario_from_document(document, Path()))


def simulated_waits_ns(job: Job) -> list[int]:
    """Returns what the simulation says each send and receive waited, by rank and start."""
    return [
        wait
        for entry in job.ranks
        for name, wait in zip(
            entry.trace.strings.texts(entry.trace.collectives.name),
            entry.trace.collectives.vendor_wait_ns.tolist(),
            strict=True,
        )
        if name.startswith(("hcom_send", "hcom_receive"))
    ]


@pytest.mark.parametrize(
    ("stages", "schedule", "chunks"),
    [(2, "1f1b", 1), (2, "gpipe", 1), (2, "interleaved", 2), (4, "1f1b", 1), (4, "interleaved", 2)],
)
def test_stages_wait_for_each_other_as_simulated(stages: int, schedule: str, chunks: int) -> None:
    recording = staged(stages, schedule, chunks)
    result = communication(recording.job)
    assert result.diagnostics == ()
    found = [
        item.wait_ns
        for rank in sorted(result.collectives)
        for item in result.collectives[rank]
        if item.name.startswith(("hcom_send", "hcom_receive"))
    ]
    assert np.abs(np.array(found) - simulated_waits_ns(recording.job)).max() <= US
    assert set(result.stages.items()) == {(rank, rank) for rank in range(stages)}


@pytest.mark.parametrize("stages", [2, 4])
def test_an_interleaved_pipeline_with_fused_attention_replays_as_it_is_simulated(stages: int) -> None:
    recording, fusion = staged(stages, "interleaved", 2), ATTENTION
    capture = capture_graph(recording.job)
    unchanged = replay_time(capture).step_ns.mean()
    assert unchanged == pytest.approx(recording.step_ns, rel=0.01)
    scenario = recording.result.scenario
    fused = fusion.on_capture(CapturePlan(capture, capture.graph, scenario.device), {}, Bound.EXPECTED)
    truth = recorded(fusion.on_scenario(scenario, {})).step_ns
    assert truth < 0.97 * recording.step_ns
    assert replay_time(capture, fused.graph).step_ns.mean() == pytest.approx(truth, rel=0.01)
