"""Sentences about late requests, one each, with the numbers that decided."""

from engine.analyses.serving.jitter import LateRequest
from engine.analyses.serving.jitter_parts import Cause
from engine.core.number_format import format_count, format_duration_ns


def late_sentence(late: LateRequest) -> str:
    """Returns who was late, by how much, and what it waited for longest, without full stop."""
    part_ns = late.parts_ns[late.cause]
    head = (
        f"request {late.request}: {late.limit.value} took {format_duration_ns(late.taken_ns)} "
        f"(late from {format_duration_ns(late.limit_ns)} on)"
    )
    return f"{head}, {format_duration_ns(part_ns)} of {_whole(late)}because {_because(late)}"


def _whole(late: LateRequest) -> str:
    whole_ns = late.end_ns - late.start_ns
    return "it " if whole_ns == late.taken_ns else f"its longest gap of {format_duration_ns(whole_ns)} "


def _because(late: LateRequest) -> str:
    sequences = _counted(late.running, "sequence")
    if late.cause is Cause.PLACES:
        return f"the batch was full: {sequences} ran, up to {_counted(late.waiting, 'request')} waited"
    if late.cause is Cause.BLOCKS:
        return f"no blocks of keys and values were free for it while {sequences} ran"
    if late.cause is Cause.PREEMPTED:
        return f"it was preempted: {sequences} needed more keys and values than there is room for"
    if late.cause is Cause.COMPANY:
        return "the engine was idle and waited for more requests"
    if late.cause is Cause.OWN_PROMPT:
        return "its own prompt was computed"
    if late.cause is Cause.BATCH:
        return f"{sequences} got their tokens in the same iterations"
    if late.cause is Cause.ITERATION:
        return f"an iteration of {sequences} was under way when it came"
    word = "the tokens of an iteration were used up" if late.cause is Cause.TOKENS else "other prompts were computed"
    if late.blamed < 0:
        return word
    return f"{word}: the longest of {format_count(late.blamed_tokens)} tokens, of request {late.blamed}"


def _counted(count: int, what: str) -> str:
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"
