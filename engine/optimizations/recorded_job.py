"""What a recorded job says of the machine it ran on."""

from engine.optimizations.interface import CapturePlan


def environment(plan: CapturePlan, name: str) -> str:
    """Returns an environment variable of the recorded job, "" where it is not set or not recorded."""
    values = (entry.trace.metadata.environment.get(name, "") for entry in plan.capture.job.ranks)
    return next((value for value in values if value), "")


def has_environment(plan: CapturePlan) -> bool:
    """Returns whether the capture says which environment variables its job had."""
    return any(entry.trace.metadata.environment for entry in plan.capture.job.ranks)


def is_gpu(plan: CapturePlan) -> bool:
    """Returns whether the job ran on CUDA or ROCm devices."""
    if plan.device is not None:
        return plan.device.vendor != "Huawei"
    words = " ".join(entry.trace.metadata.device or "" for entry in plan.capture.job.ranks).casefold()
    return any(word in words for word in ("nvidia", "tesla", "geforce", "amd", "instinct", "mi2", "mi3"))
