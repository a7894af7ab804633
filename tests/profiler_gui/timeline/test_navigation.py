import numpy as np

from engine.trace import Origin, Source, TraceBuilder, TraceMetadata, Track, TrackKind
from profiler_gui.timeline.navigation import along_flow, first_event_in, neighbour_on_lane
from profiler_gui.timeline.overlays import flows_of
from tests.support.trace_text import trace_from_text


def test_neighbours_are_on_the_same_lane():
    trace = trace_from_text("host 1 | AAAA.BBBB |\nhost 1 | CC....D.. |\ngpu 7 | EE....... |")
    by_name = {trace.name(event): event for event in range(len(trace.events))}
    assert neighbour_on_lane(trace, by_name["A"], forward=True) == by_name["B"]
    assert neighbour_on_lane(trace, by_name["C"], forward=True) == by_name["D"]
    assert neighbour_on_lane(trace, by_name["D"], forward=False) == by_name["C"]
    assert neighbour_on_lane(trace, by_name["B"], forward=True) is None
    assert neighbour_on_lane(trace, by_name["E"], forward=False) is None


def test_the_first_event_of_a_range_starts_in_it():
    trace = trace_from_text("host 1 | AAAA.BBBB |\ngpu 7 | ..EE..... |")
    assert trace.name(first_event_in(trace, 1_000, 9_000)) == "E"
    assert first_event_in(trace, 8_000, 9_000) is None


def test_arrows_are_followed_to_the_nearest_end():
    builder = TraceBuilder()
    track = builder.add_track(Track(TrackKind.HOST_THREAD, "t"))
    name = builder.strings.intern("a")
    starts_ns = np.array([0, 100, 500])
    builder.add_events(start_ns=starts_ns, duration_ns=np.array([10, 10, 10]), track=track, name=name)
    builder.add_flows(np.array([0, 0]), np.array([2, 1]), "ac2g")
    trace = builder.build(origin=Origin.SIMULATED, source=Source("", ""), metadata=TraceMetadata(), clock_is_unix=False)
    assert along_flow(trace, 0, forward=True) == 1
    assert along_flow(trace, 2, forward=False) == 0
    assert along_flow(trace, 1, forward=True) is None
    assert flows_of(trace, 0).tolist() == [0, 1]
    assert flows_of(trace, 1).tolist() == [1]
