"""The allocator policies by the names a scenario or the command line uses."""

from dataclasses import dataclass, replace

from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE, CachingAllocator
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.interface import Allocator


@dataclass(frozen=True, slots=True)
class AllocatorPolicy:
    """A policy of the caching family.

    Attributes:
        id: As on the command line.
        title: What it is, for people.
        settings: Its rules.
    """

    id: str
    title: str
    settings: CachingSettings

    def under(self, limit_bytes: int | None) -> "AllocatorPolicy":
        """Returns the policy with a limit on what it may reserve."""
        return replace(self, settings=replace(self.settings, limit_bytes=limit_bytes))


ALLOCATOR_POLICIES = (
    AllocatorPolicy("caching", "torch_npu's caching allocator", CACHING),
    AllocatorPolicy("caching-cuda", "PyTorch's CUDA caching allocator", CACHING_CUDA),
    AllocatorPolicy("expandable", "torch_npu with expandable segments", EXPANDABLE),
)
"""Every policy of the caching family."""


def allocator_policy(policy_id: str) -> AllocatorPolicy:
    """Returns the policy with that id; KeyError where there is none."""
    for policy in ALLOCATOR_POLICIES:
        if policy.id == policy_id:
            return policy
    raise KeyError(policy_id)


def new_allocator(policy: AllocatorPolicy, stream_count: int) -> Allocator:
    """Returns a fresh allocator of a policy."""
    return CachingAllocator(policy.settings, stream_count=stream_count)
