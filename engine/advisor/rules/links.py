"""Transfers: too many, too small, or over a link that is slower than its neighbours."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.advisor.collective_purpose import Purpose, purpose_of
from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Estimate, Evidence, Finding, Unit
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.communication import Collective
from engine.analyses.fusion import Range3
from engine.core.errors import MissingDataError
from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from engine.core.units import MIB, NS_PER_S
from engine.optimizations.interface import Switch

BUCKET_BYTES = 64 * MIB
"""What MindSpore's automatic gradient fusion gathers into one collective (tutorials parallel/comm_fusion.md)."""
_FEWEST_SIZES = 4
"""Through fewer a line may be chance; a choice."""
_SPREAD_RATIO = 0.2
"""Links of one kind further apart than this are not alike; msprof-analyze warns from 0.05, which clocks alone reach."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """Time of collectives of one kind against their payload: a fixed part each, and a part per byte."""

    rank: int
    items: tuple[Collective, ...]
    fixed_ns: float
    saved_ns: float


def small_packets(examination: Examination) -> Sequence[Finding]:
    """Returns gradient collectives that would be faster in fewer, larger ones.

    The fixed time of one collective comes from a line through their own sizes and transfers (largest slope and
    intercept not below zero): without several sizes nothing can be told.
    """
    if not any(examination.collectives(rank) for rank in examination.windows):
        return ()
    fits = [fit for rank in examination.windows if (fit := _fit(examination, rank)) is not None]
    if not fits:
        raise MissingDataError("gradient collectives of several sizes with their transfer time")
    fit = max(fits, key=lambda item: item.saved_ns)
    if examination.share(fit.saved_ns) < WORTH_RATIO:
        return ()
    count = len(fit.items) / examination.windows[fit.rank].step_count
    total = sum(item.bytes or 0 for item in fit.items)
    mean = total / len(fit.items)
    return [
        loss(
            examination,
            "communication.small_packets",
            Category.COMMUNICATION,
            f"Gradients of rank {fit.rank} go in {format_count(round(count))} collectives of {format_bytes(mean)} each",
            f"each of them costs {format_duration_ns(fit.fixed_ns)} besides its bytes",
            fit.saved_ns,
            (
                Evidence(
                    "fixed time of one collective", fit.fixed_ns, Unit.NS, rank=fit.rank, how="line through sizes"
                ),
                Evidence("collectives per step", count, Unit.COUNT, rank=fit.rank, events=_events(fit.items)),
                Evidence("mean payload", mean, Unit.BYTES, float(BUCKET_BYTES), fit.rank),
            ),
            (_larger_buckets(fit),),
        )
    ]


def _larger_buckets(fit: _Fit) -> Action:
    return Action(
        id="communication.larger_buckets",
        title="Reduce gradients in fewer, larger collectives",
        how_to_apply=(
            Switch(
                "PyTorch DDP",
                "",
                f"DistributedDataParallel(bucket_cap_mb={BUCKET_BYTES // MIB})",
                "torch.nn.parallel.DistributedDataParallel",
                "larger buckets begin later: less of them can be hidden",
            ),
            Switch(
                "MindSpore",
                "",
                'comm_fusion(config={"allreduce": {"mode": "auto"}})',
                "tutorials parallel/comm_fusion.md",
            ),
        ),
        estimate=Estimate(
            Range3(0.0, fit.saved_ns, fit.saved_ns),
            None,
            (
                f"each collective has a fixed part of {format_duration_ns(fit.fixed_ns)}: a line through their sizes",
                f"buckets of {format_bytes(BUCKET_BYTES)}; low: what is hidden behind computing anyway wins nothing",
            ),
        ),
        risk="a little more memory for the buckets",
        undo="the former bucket size (25 MiB by default)",
        verify="count and transfer of gradient collectives, after 2 warm steps",
    )


def _fit(examination: Examination, rank: int) -> _Fit | None:
    kinds: dict[str, list[Collective]] = defaultdict(list)
    for item in examination.collectives(rank):
        if item.bytes and item.transfer_ns and purpose_of(item) is Purpose.GRADIENTS:
            kinds[f"{item.group} {''.join(c for c in item.name.split('__')[0] if c.isalpha())}"].append(item)
    best = None
    for items in kinds.values():
        size = np.array([item.bytes for item in items], dtype=np.float64)
        time = np.array([item.transfer_ns for item in items], dtype=np.float64)
        if len(np.unique(size)) < _FEWEST_SIZES:
            continue
        slope, fixed = np.polyfit(size, time, 1)
        if slope <= 0 or fixed <= 0:
            continue
        steps = examination.windows[rank].step_count
        spared = len(items) / steps - max(float(size.sum()) / steps / BUCKET_BYTES, 1.0)
        fit = _Fit(rank, tuple(items), float(fixed), max(spared, 0.0) * float(fixed))
        best = fit if best is None or fit.saved_ns > best.saved_ns else best
    return best


def slow_link(examination: Examination) -> Sequence[Finding]:
    """Returns a rank whose links of one kind move bytes notably slower than the other ranks' do."""
    rates: dict[str, dict[int, tuple[float, int]]] = defaultdict(dict)
    for rank in examination.windows:
        for link in examination.summary.communication.links.get(rank, ()):
            if link.transit_ns > 0 and link.bytes > 0:
                rates[link.link][rank] = (link.bytes * NS_PER_S / link.transit_ns, link.bytes)
    compared = {link: values for link, values in rates.items() if len(values) > 1}
    if not compared:
        if any(examination.collectives(rank) for rank in examination.windows):
            raise MissingDataError(
                "bytes and times per link of several ranks", "open communication_matrix of all ranks"
            )
        return ()
    found = []
    for name, values in compared.items():
        median = float(np.median([rate for rate, _ in values.values()]))
        rank = min(values, key=lambda each: values[each][0])
        rate, size = values[rank]
        if rate >= (1 - _SPREAD_RATIO) * median:
            continue
        lost_ns = size * NS_PER_S * (1 / rate - 1 / median) / examination.windows[rank].step_count
        if examination.share(lost_ns) >= WORTH_RATIO:
            found.append(_slow(examination, name, rank, rate, median, lost_ns))
    return found


def _slow(examination: Examination, link: str, rank: int, rate: float, median: float, lost_ns: float) -> Finding:
    action = Action(
        id=f"communication.link_of_rank_{rank}",
        title=f"Check the {link} links of rank {rank}",
        how_to_apply=(
            Switch(
                "driver",
                "",
                "hccn_tool -i N -link -g; hccn_tool -i N -stat -g" if link == "RDMA" else "npu-smi info -t topo",
                "Ascend driver reference",
                "HCCL_RDMA_TC and HCCL_RDMA_SL must match the switches' flow control" if link == "RDMA" else "",
            ),
        ),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify=f"rate of {link} of rank {rank} in the communication matrix",
    )
    return loss(
        examination,
        "communication.slow_link",
        Category.COMMUNICATION,
        f"{link} of rank {rank} moves {rate / 1e9:,.1f} GB/s, {format_ratio(1 - rate / median)} less than the median",
        "a slower or shared link, or retransmissions",
        lost_ns,
        (
            Evidence(
                f"rate of {link}", rate, Unit.BYTES_PER_S, (1 - _SPREAD_RATIO) * median, rank, how="bytes ÷ transit"
            ),
            Evidence("median of the ranks", median, Unit.BYTES_PER_S),
        ),
        (action,),
    )


def _events(items: Sequence[Collective]) -> tuple[int, ...]:
    longest = sorted(items, key=lambda item: -item.elapsed_ns)[:12]
    return tuple(item.event for item in longest if item.event >= 0)


RULES = (
    Rule("communication.small_packets", "Too many, too small collectives", small_packets),
    Rule("communication.slow_link", "Links slower than those of other ranks", slow_link),
)
