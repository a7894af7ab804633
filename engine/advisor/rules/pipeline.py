"""Pipeline stages of unequal length, and bubbles."""

from collections.abc import Sequence
from dataclasses import replace

from engine.advisor.bottlenecks import Loss
from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Estimate, Evidence, Finding, Toggle, Unit
from engine.advisor.layout_variants import layout_variants
from engine.advisor.pipeline_times import Pipeline, makespan_ns, pipeline_of
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.communication import Collective
from engine.analyses.fusion import Range3
from engine.core.errors import MissingDataError
from engine.core.number_format import format_duration_ns, format_ratio
from engine.optimizations.interface import ParameterValue, Switch
from engine.trace.trace import TimeRange
from engine.workloads.scenario import Scenario

_IMBALANCE_RATIO = 0.05
"""Stages closer together than this share of the slowest count as balanced: msprof-analyze's limit for slow ranks."""
_MOST_SHIFTS = 16
"""Each is a rerun; more layers than that are rarely apart."""
_NO_COMMUNICATION = "reckoned from computing alone: transfers and the host stay as they are"


_LAYOUT = "parallel.layout"
_MORE = "pipeline.more_micro_batches"
_MICRO_BATCHES = (
    Switch(
        "MindSpeed-LLM / Megatron",
        "",
        "--micro-batch-size N (halve it), or --global-batch-size N (double it)",
        "MindSpeed-LLM docs",
        "a larger global batch changes training: adjust the learning rate",
    ),
    Switch(
        "MindSpeed",
        "",
        "--num-layers-per-virtual-pipeline-stage N",
        "MindSpeed docs/zh/features",
        "interleaving shortens bubbles too; layers must divide; needs more memory and communication",
    ),
)


def stage_imbalance(examination: Examination) -> Sequence[Finding]:
    """Returns the slowest stage where it computes notably longer than the mean, with the best shift found by trying."""
    pipeline = _known(examination)
    if pipeline is None:
        return ()
    times = pipeline.computing_ns
    mean_ns = sum(times) / len(times)
    slowest = pipeline.slowest
    excess_ns = times[slowest] - mean_ns
    if excess_ns < _IMBALANCE_RATIO * times[slowest] or examination.share(excess_ns) < WORTH_RATIO:
        return ()
    listed = " against ".join(format_duration_ns(value) for value in sorted(times))
    evidence = [
        Evidence(
            f"stage {stage + 1} computes",
            value,
            Unit.NS,
            threshold=mean_ns,
            rank=pipeline.ranks[stage][0],
            range=_range(examination, pipeline.ranks[stage]),
            how="mean over its ranks, typical step",
        )
        for stage, value in sorted(enumerate(times), key=lambda item: -item[1])
    ]
    # 0 lets the optimization even computing out; moving more than that would leave host time on the wrong stage.
    shifts = tuple({"stage_shift": count} for count in range(_even_shift(pipeline) + 1))
    return [
        loss(
            examination,
            "pipeline.stage_imbalance",
            Category.PIPELINE,
            f"The pipeline's stages are uneven: {listed} of computing per step",
            f"stage {slowest + 1} has more to do than the others, which wait for it",
            excess_ns,
            evidence,
            (
                Toggle(
                    _LAYOUT,
                    shifts,
                    "pipeline.balance_stages",
                    f"Move layers from stage {slowest + 1} to the others",
                    _balance_estimate(pipeline),
                    _layer_switches(),
                ),
            ),
        )
    ]


def bubbles(examination: Examination) -> Sequence[Finding]:
    """Returns the waiting for other stages that remains, with what more micro-batches would leave of it."""
    pipeline = _known(examination)
    if pipeline is None:
        return ()
    waits = {rank: _stage_wait_ns(examination, rank) for rank in examination.windows}
    known = {rank: ns for rank, ns in waits.items() if ns is not None}
    if not known:
        raise MissingDataError(
            "exchange between stages with all its members", "open the captures of all stages together"
        )
    slow = [rank for rank in pipeline.ranks[pipeline.slowest] if rank in known] or list(known)
    rank = max(slow, key=lambda each: known[each])
    bubble_ns = known[rank]
    if examination.share(bubble_ns) < WORTH_RATIO:
        return ()
    count = pipeline.micro_batch_count
    stage_count = len(pipeline.computing_ns)
    told = "an unknown number of" if count is None else str(count)
    evidence = (
        Evidence(
            "the slowest stage waits for the others",
            bubble_ns,
            Unit.NS,
            rank=rank,
            range=_range(examination, (rank,)),
            events=tuple(
                item.event for item in examination.collectives(rank) if _is_stage_wait(examination, rank, item)
            ),
            how="waiting of its collectives for ranks of other stages, per step",
        ),
        Evidence("stages", stage_count, Unit.COUNT),
        *((Evidence("micro-batches per step", count, Unit.COUNT, how="exchanges of the last stage"),) if count else ()),
    )
    return [
        loss(
            examination,
            "pipeline.bubbles",
            Category.PIPELINE,
            f"Even the slowest stage waits {format_duration_ns(bubble_ns)} of the step "
            f"({format_ratio(examination.share(bubble_ns))}) for the others: bubbles",
            f"{stage_count} stages fill and drain with {told} micro-batches per step",
            bubble_ns,
            evidence,
            _shorter_bubbles(examination, pipeline),
        )
    ]


def _shorter_bubbles(examination: Examination, pipeline: Pipeline) -> tuple[Toggle | Action, ...]:
    """Returns what fills a pipeline better: more micro-batches, and for simulated jobs other layouts."""
    scenario = examination.scenario
    estimate = _fuller_estimate(pipeline)
    if scenario is None:
        # Any smaller micro-batch is asked for: what a capture answers is that it needs a twin.
        variants: tuple[dict[str, ParameterValue], ...] = ({"micro": 1},)
        return (Toggle(_LAYOUT, variants, _MORE, "Run more micro-batches per step", estimate, _MICRO_BATCHES),)
    more = Action(
        id=_MORE,
        title="Run twice the micro-batches per step",
        how_to_apply=_MICRO_BATCHES,
        estimate=estimate,
        risk="a larger global batch changes training: adjust the learning rate",
        undo="the former batch sizes",
        verify="bubbles and tokens per second, after 5 warm steps",
        change=_twice_the_micro_batches,
    )
    layouts = layout_variants(scenario, Loss.BUBBLES)
    return (more, *((Toggle(_LAYOUT, layouts, "pipeline.layout", "Lay the pipeline out anew"),) if layouts else ()))


def _twice_the_micro_batches(scenario: Scenario) -> Scenario:
    return replace(scenario, batch=replace(scenario.batch, global_sequences=2 * scenario.batch.global_sequences))


def _fuller_estimate(pipeline: Pipeline) -> Estimate | None:
    """Returns what twice (high: four times) the micro-batches win at equal tokens, None for an unknown number."""
    count = pipeline.micro_batch_count
    if count is None:
        return None
    before = makespan_ns(pipeline.computing_ns, count)
    gains = [before - makespan_ns(pipeline.computing_ns, count * factor) for factor in (2, 4)]
    return Estimate(
        Range3(0.0, gains[0], gains[1]),
        None,
        (
            f"{2 * count} micro-batches of half the work each (high: {4 * count}), at equal tokens per step",
            "where a micro-batch cannot be split the global batch grows instead, and the gain is per token",
            _NO_COMMUNICATION,
            "low: smaller micro-batches may compute less efficiently by as much",
        ),
    )


def _balance_estimate(pipeline: Pipeline) -> Estimate | None:
    """Returns the best shift of whole layers, found by trying every number of layers."""
    count, layers = pipeline.micro_batch_count, pipeline.layer_count
    if count is None or layers is None:
        return None
    times, slowest = list(pipeline.computing_ns), pipeline.slowest
    fastest = min(range(len(times)), key=lambda stage: times[stage])
    # A layer costs what the fastest stage, which has little besides layers, spends on each of its own at most.
    layer_ns = times[fastest] / layers
    before = makespan_ns(times, count)
    gains = []
    for moved in range(1, layers):
        tried = list(times)
        tried[slowest] -= moved * layer_ns
        tried[fastest] += moved * layer_ns
        gains.append(before - makespan_ns(tried, count))
    best = max(gains, default=0.0)
    if best <= 0:
        return None
    moved = gains.index(best) + 1
    ideal = before - makespan_ns([sum(times) / len(times)] * len(times), count)
    return Estimate(
        Range3(gains[moved - 2] if moved > 1 else 0.0, best, ideal),
        None,
        (
            f"the best of all whole numbers: {moved} of {layers} layers go from stage {slowest + 1} to {fastest + 1}",
            f"a layer takes {format_duration_ns(layer_ns)}; low: one layer fewer is moved",
            _NO_COMMUNICATION,
        ),
    )


def _layer_switches() -> tuple[Switch, ...]:
    return (
        Switch(
            "MindSpeed-LLM",
            "",
            "--num-layer-list A,B,… (layers of each stage)",
            "MindSpeed-LLM docs/en/pytorch/features/mcore",
            "not with interleaving",
        ),
        Switch(
            "Megatron-LM",
            "",
            "--decoder-first-pipeline-num-layers A / --decoder-last-pipeline-num-layers B",
            "Megatron-LM arguments",
        ),
    )


def _even_shift(pipeline: Pipeline) -> int:
    """Returns how many whole layers may move before the other stage would compute longer, 0 where that is not known."""
    if not pipeline.layer_count:
        return 0
    slowest, fastest = max(pipeline.computing_ns), min(pipeline.computing_ns)
    return min(int((slowest - fastest) / 2 / (fastest / pipeline.layer_count)), pipeline.layer_count - 1, _MOST_SHIFTS)


def _range(examination: Examination, ranks: Sequence[int]) -> TimeRange | None:
    return next((examination.steps[rank].range for rank in ranks if rank in examination.steps), None)


def _stage_wait_ns(examination: Examination, rank: int) -> float | None:
    """Returns how long a rank waits for ranks of other stages per step, None where nothing is split."""
    items = examination.collectives(rank)
    if not any(item.wait_ns is not None for item in items):
        return None
    waited = sum(item.wait_ns or 0 for item in items if _is_stage_wait(examination, rank, item))
    return waited / examination.windows[rank].step_count


def _is_stage_wait(examination: Examination, rank: int, item: Collective) -> bool:
    stages = examination.summary.communication.stages
    return item.late_rank is not None and stages.get(item.late_rank) != stages.get(rank)


def _known(examination: Examination) -> Pipeline | None:
    """Returns the pipeline, None where the job has none; raises MissingDataError where its stages are not all open."""
    if len(set(examination.summary.communication.stages.values())) < 2:
        return None
    pipeline = pipeline_of(examination)
    if pipeline is None:
        raise MissingDataError("computing of every pipeline stage", "open the captures of all stages together")
    return pipeline


RULES = (
    Rule("pipeline.stage_imbalance", "Pipeline stages of unequal length", stage_imbalance),
    Rule("pipeline.bubbles", "Pipeline bubbles", bubbles),
)
