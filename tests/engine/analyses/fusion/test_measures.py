from pathlib import Path

from engine.analyses.fusion import fusion_candidates
from engine.analyses.fusion.kernel_sequence import kernel_sequence
from engine.analyses.fusion.measures import dispatch_ns, measure
from tests.support.kernel_runs import Kernel, kernel_trace
from tests.support.opened import opened_trace


def test_a_launch_takes_no_longer_than_the_host_needs_between_launches() -> None:
    sequence = kernel_sequence(kernel_trace([Kernel("Mul", 10.0, gap_us=500.0) for _ in range(8)]))
    assert measure(sequence, None).longest_wait_ns == 500_000
    assert measure(sequence, None, dispatch_ns=40_000).longest_wait_ns == 40_000
    assert measure(sequence, None, dispatch_ns=900_000).longest_wait_ns == 500_000


def test_without_launches_nothing_is_known_of_the_host() -> None:
    assert dispatch_ns(kernel_trace([Kernel("Mul")])) is None


def test_warming_up_is_not_what_fusing_wins(captures: Path) -> None:
    trace = opened_trace(captures / "pytorch" / "alexnet.json.gz")
    dispatch = dispatch_ns(trace)
    assert dispatch is not None
    for candidate in fusion_candidates(trace):
        waits = candidate.launches - len(candidate.occurrences)
        assert candidate.gap_ns > 100 * candidate.total_ns  # seconds of warming up stand between its kernels
        assert candidate.saving_ns.high <= candidate.total_ns + waits * dispatch
