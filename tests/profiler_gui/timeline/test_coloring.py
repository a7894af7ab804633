import numpy as np

from engine.trace import StringTable
from profiler_gui.timeline.coloring import EventColors, _shades, dimmed, event_colors, event_families
from profiler_gui.timeline.emphasis import events_named
from profiler_gui.timeline.lanes import LaneMaker, lane_counts
from profiler_gui.timeline.palette import DIMMED, SHADES, Family
from tests.support.trace_text import trace_from_text

PICTURE = """
    host 1  | HHHHPPPP |
    host 1  | .R..ssss |
    gpu 7   | KKMMNNWW |
    comm g  | CCCC.... |
    plane 0 | XXnn.... |
"""
NAMES = {
    "H": "aten::add",
    "R": "cudaLaunchKernel",
    "P": "module.py(3): forward",
    "s": "ProfilerStep#3",
    "K": "gemm",
    "M": "Memcpy HtoD",
    "N": "ncclDevKernel_AllReduce",
    "W": "Stream Wait Event",
    "C": "hcom_allReduce",
    "X": "Reduce_inline",
    "n": "Notify_Wait",
}
CATEGORIES = {"R": "cuda_runtime", "P": "python_function", "M": "gpu_memcpy", "W": "cuda_sync"}


def families_by_name() -> dict[str, Family]:
    trace = trace_from_text(PICTURE, NAMES, CATEGORIES)
    return {trace.name(event): Family(family) for event, family in enumerate(event_families(trace).tolist())}


def test_every_kind_of_work_has_its_family():
    assert families_by_name() == {
        "aten::add": Family.HOST,
        "cudaLaunchKernel": Family.RUNTIME,
        "module.py(3): forward": Family.PYTHON,
        "ProfilerStep#3": Family.ANNOTATION,
        "gemm": Family.COMPUTING,
        "Memcpy HtoD": Family.MEMORY,
        "ncclDevKernel_AllReduce": Family.COMMUNICATION,
        "Stream Wait Event": Family.SYNCHRONIZATION,
        "hcom_allReduce": Family.COMMUNICATION,
        "Reduce_inline": Family.TRANSFER,
        "Notify_Wait": Family.SYNCHRONIZATION,
    }


def test_the_same_name_has_the_same_shade_in_every_trace():
    one = StringTable.from_strings(["gemm", "add", "größer", ""])
    other = StringTable.from_strings(["", "größer", "x", "gemm"])
    shades, others = _shades(one.data, one.offsets), _shades(other.data, other.offsets)
    assert [shades[0], shades[2], shades[3]] == [others[3], others[1], others[0]]
    assert max(shades) < SHADES


def test_shades_are_spread_over_names():
    table = StringTable.from_strings([f"operator_{index}" for index in range(4000)])
    counts = np.bincount(_shades(table.data, table.offsets), minlength=SHADES)
    assert counts.min() > 300


def test_events_of_one_name_look_alike_and_the_family_is_in_the_colour():
    trace = trace_from_text("gpu 7 | AA.AA.BB |")
    colors = event_colors(trace)
    assert colors[0] == colors[1]
    assert colors[0] // SHADES == Family.COMPUTING


def test_an_empty_trace_has_no_colours():
    assert len(event_colors(trace_from_text("gpu 7 | .... |"))) == 0


def test_what_does_not_match_is_dimmed():
    assert dimmed(np.array([3, 4], np.uint8), np.array([True, False])).tolist() == [3, 4 | DIMMED]


def test_lanes_hold_every_event_of_the_track_once():
    trace = trace_from_text(PICTURE, NAMES, CATEGORIES)
    maker = LaneMaker(trace, EventColors(trace))
    lanes = [lane for track in range(len(trace.tracks)) for lane in maker.make(track)]
    assert sorted(event for lane in lanes for event in lane.events.tolist()) == list(range(len(trace.events)))
    assert lane_counts(trace) == [len(maker.make(track)) for track in range(len(trace.tracks))]


def test_matches_keep_their_colour_and_hidden_categories_are_left_out():
    trace = trace_from_text(PICTURE, NAMES, CATEGORIES)
    gemms = events_named(trace, np.array([text == "gemm" for text in trace.strings]))
    stream = next(index for index, track in enumerate(trace.tracks) if track.name == "gpu 7")
    lane = LaneMaker(trace, EventColors(trace), lambda: gemms, frozenset({"gpu_memcpy"})).make(stream)[0]
    assert [trace.name(event) for event in lane.events.tolist()] == [
        "gemm",
        "ncclDevKernel_AllReduce",
        "Stream Wait Event",
    ]
    assert (lane.color >= DIMMED).tolist() == [False, True, True]


def test_steps_are_known_by_their_name_wherever_it_stands():
    trace = trace_from_text(
        "host 1 | AABBCC |", {"A": "ProfilerStep#1", "B": "after ProfilerStep#1", "C": "profilerstep"}
    )
    families = dict(zip([trace.name(event) for event in range(3)], event_families(trace).tolist(), strict=True))
    assert families == {
        "ProfilerStep#1": Family.ANNOTATION,
        "after ProfilerStep#1": Family.HOST,
        "profilerstep": Family.HOST,
    }


def test_the_only_category_of_a_trace_counts():
    trace = trace_from_text("host 1 | AA |", categories={"A": "python_function"})
    assert event_families(trace).tolist() == [Family.PYTHON]


def test_hiding_a_category_that_the_trace_lacks_hides_nothing():
    trace = trace_from_text("comm g | CC |")
    colors = EventColors(trace)
    assert len(LaneMaker(trace, colors, None, frozenset({"no such"})).make(0)[0]) == 1
