"""The step a rank is spoken about by: the one of median length among those with device work."""

from engine.analyses.steps import Step


def measured_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Returns the steps with device work, the shortest first: of a host-only trace there is nothing to divide."""
    return tuple(sorted((step for step in steps if step.computing_ns or step.communication_ns), key=step_length_ns))


def typical_step(steps: tuple[Step, ...]) -> Step | None:
    """Returns the step of median length (the shorter of the two middle ones); None without device work."""
    measured = measured_steps(steps)
    return measured[(len(measured) - 1) // 2] if measured else None


def step_length_ns(step: Step) -> float:
    """Returns the step's length: of ranks that recorded collectives only the file's parts reach further."""
    parts = (step.computing_ns, step.communication_not_overlapped_ns, step.free_ns)
    return max(float(step.range.duration_ns), sum(part or 0.0 for part in parts))
