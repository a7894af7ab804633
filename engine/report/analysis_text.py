"""The analysis for people at a terminal."""

from collections import defaultdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.headline import headline
from engine.analyses.summary import JobSummary, RankSummary
from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from engine.report.diagnostics import diagnostics_lines
from engine.report.serving_numbers import latency_table
from engine.trace.job import Job

SHOWN_ROWS = 12


def analysis_text(job: Job, summary: JobSummary) -> RenderableType:
    """Returns the headline of every rank, then tables, the largest rows first."""
    parts: list[RenderableType] = []
    for rank in summary.ranks:
        first = headline(summary, rank.rank)
        parts += [Text(f"Rank {rank.rank}. {first.sentence}", style="bold"), Text(first.memory_sentence)]
        if rank.serving is not None:
            parts.append(latency_table(rank.serving, "Requests"))
        parts += [table for table in _tables(summary, rank) if table.row_count]
    slow = [
        f"slow rank {item.rank}: {item.cause} (costs {format_duration_ns(item.cost_ns)})"
        for item in summary.communication.slow_ranks
    ]
    return Group(*parts, Text("\n".join(slow + diagnostics_lines(job, summary.communication.diagnostics))))


def _tables(summary: JobSummary, rank: RankSummary) -> list[Table]:
    return [_steps(rank), _operators(rank), _fusion(rank), _idle(rank), _communication(summary, rank), _memory(rank)]


def _duration(duration_ns: float | None) -> str:
    return "–" if duration_ns is None else format_duration_ns(duration_ns)


def _steps(rank: RankSummary) -> Table:
    table = Table(
        "step", "computing", "not overlapped", "overlapped", "free", "bubble", "wait", "transfer", title="Steps"
    )
    for step in rank.steps[:SHOWN_ROWS]:
        table.add_row(
            "–" if step.step is None else str(step.step),
            _duration(step.computing_ns),
            _duration(step.communication_not_overlapped_ns),
            _duration(step.overlapped_ns),
            _duration(step.free_ns),
            _duration(step.bubble_ns),
            _duration(step.wait_ns),
            _duration(step.transfer_ns),
        )
    return table


def _operators(rank: RankSummary) -> Table:
    table = Table("operator", "core", "count", "total", "share", title="Operators")
    for item in rank.operators[:SHOWN_ROWS]:
        table.add_row(
            Text(item.type[:70]),
            item.core_type,
            format_count(item.count),
            _duration(item.total_ns),
            format_ratio(item.share_ratio),
        )
    return table


def _fusion(rank: RankSummary) -> Table:
    table = Table("pattern", "replacement", "count", "device time", "saving", "bound", title="Fusion candidates")
    for item in rank.fusion_candidates[:SHOWN_ROWS]:
        saving = item.saving_ns
        table.add_row(
            Text(item.title[:60]),
            Text(item.replacement or "–"),
            format_count(item.count),
            _duration(item.total_ns),
            f"{_duration(saving.low)} … {_duration(saving.expected)} … {_duration(saving.high)}",
            item.bound,
        )
    return table


def _idle(rank: RankSummary) -> Table:
    by_cause: dict[str, list[int]] = defaultdict(list)
    for gap in rank.idle:
        by_cause[gap.cause.value].append(gap.end_ns - gap.start_ns)
    table = Table("cause", "gaps", "total", title="Idle (gaps of 20 µs and more)")
    for cause, lengths in sorted(by_cause.items(), key=lambda item: -sum(item[1])):
        table.add_row(cause.replace("_", " "), format_count(len(lengths)), _duration(sum(lengths)))
    return table


def _communication(summary: JobSummary, rank: RankSummary) -> Table:
    table = Table("collective", "group", "bytes", "elapsed", "wait", "transfer", "late rank", title="Communication")
    collectives = summary.communication.collectives.get(rank.rank, ())
    for item in sorted(collectives, key=lambda item: -item.elapsed_ns)[:SHOWN_ROWS]:
        table.add_row(
            Text(item.name[:60]),
            Text(item.group_name or item.group[:20]),
            "–" if item.bytes is None else format_bytes(item.bytes),
            _duration(item.elapsed_ns),
            "unsplit" if item.wait_ns is None else _duration(item.wait_ns),
            _duration(item.transfer_ns),
            "–" if item.late_rank is None else str(item.late_rank),
        )
    return table


def _memory(rank: RankSummary) -> Table:
    table = Table("alive at the peak", "blocks", "size", title="Memory")
    for item in rank.memory.alive_at_peak[:SHOWN_ROWS] if rank.memory else ():
        table.add_row(Text(item.operator[:70]), format_count(item.count), format_bytes(item.bytes))
    return table
