"""The allocator policies by the names a scenario or the command line uses."""

from dataclasses import dataclass, replace

from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE
from engine.runtime.allocators.caching_rules import CachingSettings


@dataclass(frozen=True, slots=True)
class CachingPolicy:
    """A policy of the caching family.

    Attributes:
        id: As on the command line.
        title: What it is, for people.
        settings: Its rules.
    """

    id: str
    title: str
    settings: CachingSettings

    def under(self, limit_bytes: int | None) -> "CachingPolicy":
        """Returns the policy with a limit on what it may reserve."""
        return replace(self, settings=replace(self.settings, limit_bytes=limit_bytes))


CACHING_POLICIES = (
    CachingPolicy("caching", "torch_npu's caching allocator", CACHING),
    CachingPolicy("caching-cuda", "PyTorch's CUDA caching allocator", CACHING_CUDA),
    CachingPolicy("expandable", "torch_npu with expandable segments", EXPANDABLE),
)
"""Every policy of the caching family."""


def caching_policy(policy_id: str) -> CachingPolicy:
    """Returns the policy with that id; KeyError where there is none."""
    for policy in CACHING_POLICIES:
        if policy.id == policy_id:
            return policy
    raise KeyError(policy_id)
