import numpy as np

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.runtime.recorder import RecorderSettings, record_job
from engine.runtime.scheduler import schedule

CALL_NS, KERNEL_NS, OWN_NS = 10_000, 500_000, 2_000


def test_a_synchronisation_is_recorded_from_its_call_to_the_end_of_what_it_waits_for() -> None:
    builder = GraphBuilder()
    launch = builder.add_task("aten::mm", TaskKind.HOST, duration_ns=CALL_NS)
    kernel = builder.add_task("MatMulV3", TaskKind.CUBE, launch, stream=Stream.COMPUTE, duration_ns=KERNEL_NS)
    builder.add_task("aclrtSynchronizeDevice", TaskKind.SYNCHRONIZE, kernel, duration_ns=OWN_NS)
    graph = builder.build()
    trace = record_job(graph, schedule(graph), RecorderSettings(level=1)).ranks[0].trace
    (event,) = (row for row in range(len(trace.events)) if "Synchronize" in trace.name(row))
    start_ns = int(trace.events.start_ns[event] - trace.events.start_ns.min())
    assert (start_ns, int(trace.events.duration_ns[event])) == (CALL_NS, KERNEL_NS + OWN_NS)
    assert np.all(trace.events.duration_ns >= 0)
