"""The allocator policies by the names a scenario or the command line uses."""

from dataclasses import dataclass, replace

from engine.runtime.allocators.amc import AmcRules, amc_allocator, default_amc_rules
from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE, CachingAllocator
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.interface import Allocator
from engine.runtime.allocators.planned import PlannedAllocator
from engine.runtime.allocators.stitching import StitchingAllocator, StitchingSettings


@dataclass(frozen=True, slots=True)
class AllocatorPolicy:
    """A policy and its settings.

    Attributes:
        id: As on the command line.
        title: What it is, for people.
        settings: Rules of the caching allocator it is, or of the one beside its own mechanism.
        rules: Of ``amc``; None for the built-in ones.
    """

    id: str
    title: str
    settings: CachingSettings
    rules: AmcRules | None = None

    def under(self, limit_bytes: int | None) -> "AllocatorPolicy":
        """Returns the policy with a limit on what it may reserve."""
        return replace(self, settings=replace(self.settings, limit_bytes=limit_bytes))


ALLOCATOR_POLICIES = (
    AllocatorPolicy("caching", "torch_npu's caching allocator", CACHING),
    AllocatorPolicy("caching-cuda", "PyTorch's CUDA caching allocator", CACHING_CUDA),
    AllocatorPolicy("expandable", "torch_npu with expandable segments", EXPANDABLE),
    AllocatorPolicy("stitching", "stitching of free pages as in GMLake", CACHING),
    AllocatorPolicy("static", "a static plan of everything freed in the log", CACHING),
    AllocatorPolicy("amc", "automatic memory management with the built-in rules", EXPANDABLE),
)
"""Every policy."""


def allocator_policy(policy_id: str) -> AllocatorPolicy:
    """Returns the policy with that id; KeyError where there is none."""
    for policy in ALLOCATOR_POLICIES:
        if policy.id == policy_id:
            return policy
    raise KeyError(policy_id)


def new_allocator(policy: AllocatorPolicy, stream_count: int) -> Allocator:
    """Returns a fresh allocator of a policy.

    Args:
        policy: The policy.
        stream_count: Streams that allocate.
    """
    settings = policy.settings
    if policy.id == "stitching":
        return StitchingAllocator(StitchingSettings(small=settings), stream_count=stream_count)
    if policy.id == "static":
        return PlannedAllocator(settings, stream_count=stream_count)
    if policy.id == "amc":
        rules = policy.rules or default_amc_rules()
        return amc_allocator(rules, stream_count=stream_count, limit_bytes=settings.limit_bytes)
    return CachingAllocator(settings, stream_count=stream_count)
