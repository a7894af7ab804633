"""Which allocator wrote a snapshot: from its settings, its segments and the sizes of its blocks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.formats.snapshots.allocator_snapshot import AllocatorSnapshot, BlockState, SnapshotAction
from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE, EXPANDABLE_CUDA
from engine.runtime.allocators.caching_rules import CachingSettings, rounded_size, rules_of
from engine.runtime.allocators.catalogue import AllocatorPolicy


def snapshot_policy(snapshot: AllocatorSnapshot, device: int) -> AllocatorPolicy:
    """Returns the policy a snapshot was written under.

    CUDA writes its settings into the file, torch_npu writes none. Without settings the blocks decide: torch_npu pads
    every request by 32 bytes, so blocks of requests just below a multiple of 512 bytes come out one unit larger.
    """
    padded = not snapshot.settings and not _is_unpadded(snapshot, device)
    expandable = bool(snapshot.settings.get("expandable_segments")) or _has_pages(snapshot, device)
    if expandable:
        base = EXPANDABLE if padded else EXPANDABLE_CUDA
        title = "torch_npu with expandable segments" if padded else "PyTorch CUDA with expandable segments"
        return AllocatorPolicy("expandable", title, _configured(base, snapshot.settings))
    if padded:
        return AllocatorPolicy("caching", "torch_npu's caching allocator", CACHING)
    return AllocatorPolicy(
        "caching-cuda", "PyTorch's CUDA caching allocator", _configured(CACHING_CUDA, snapshot.settings)
    )


def _has_pages(snapshot: AllocatorSnapshot, device: int) -> bool:
    if any(segment.expandable for segment in snapshot.segments if segment.device == device):
        return True
    log = snapshot.logs.get(device)
    return log is not None and bool((log.action == SnapshotAction.SEGMENT_MAP).any())


def _is_unpadded(snapshot: AllocatorSnapshot, device: int) -> bool:
    """Tells whether more blocks are smaller than padding would make them than are as large."""
    plain, padded = rules_of(CACHING_CUDA), rules_of(CACHING)
    votes = 0
    for segment in snapshot.segments:
        for block in segment.blocks if segment.device == device else ():
            if block.state is BlockState.INACTIVE:
                continue
            without = rounded_size(plain, block.requested_bytes)
            if without != rounded_size(padded, block.requested_bytes):
                votes += 1 if block.size_bytes == without else -1
    return votes > 0


def _configured(base: CachingSettings, settings: Mapping[str, Any]) -> CachingSettings:
    """Returns the policy with the snapshot's ``max_split_size`` (bytes; −1 for none) and power-of-two divisions."""
    split = settings.get("max_split_size")
    divisions = settings.get("roundup_power2_divisions")
    return replace(
        base,
        max_split_size_bytes=split if isinstance(split, int) and split > 0 else None,
        roundup_power2_divisions={
            int(bucket): int(count)
            for bucket, count in (divisions.items() if isinstance(divisions, dict) else ())
            if str(bucket).isdecimal() and isinstance(count, int) and count > 1
        },
    )


def policy_facts(settings: CachingSettings) -> dict[str, int | bool | None]:
    """Returns what of a policy decides addresses, for reports: sizes in bytes."""
    return {
        "pad_bytes": settings.pad_bytes,
        "expandable_segments": settings.expandable_segments,
        "base_alignment_bytes": settings.base_alignment_bytes,
        "max_split_size_bytes": settings.max_split_size_bytes,
        "limit_bytes": settings.limit_bytes,
    }
