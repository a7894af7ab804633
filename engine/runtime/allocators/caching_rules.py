"""Constants and settings of the caching allocators of torch_npu and PyTorch CUDA: sizes, rounding, limits."""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.units import GIB, KIB, MIB
from engine.runtime.allocators.compiled import compiled

UNLIMITED = 1 << 62
MIN_BLOCK_BYTES = 512
SMALL_LIMIT_BYTES = 1 * MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
OWN_SEGMENT_FROM_BYTES = 10 * MIB
OWN_SEGMENT_ROUNDING_BYTES = 2 * MIB
NPU_PAD_BYTES = 32
NPU_BASE_ALIGNMENT_BYTES = 16 * KIB
NPU_BASE_ALIGNMENT_FROM_BYTES = 2 * MIB
ROUNDUP_BUCKETS = 16
"""Power-of-two buckets of ``roundup_power2_divisions``: 1 MiB and below, 2 MiB, … 32 GiB and above."""


@dataclass(frozen=True, slots=True)
class CachingSettings:
    """What ``PYTORCH_NPU_ALLOC_CONF`` (or the CUDA one) can say, and what the device is.

    Attributes:
        pad_bytes: Added to a request before rounding: 32 in torch_npu, 0 in CUDA.
        expandable_segments: Segments grow by mapping pages into a reserved address range.
        base_alignment_bytes: Of blocks of 2 MiB and more in expandable segments: 16 KiB in torch_npu, 1 for none.
        max_split_size_bytes: Blocks of this size and more are never split; None for no limit.
        max_unsplit_rounding_bytes: How much larger than the request an unsplit block may be.
        garbage_collection_ratio: Of the limit; above it old unsplit blocks are given back; None for never.
        roundup_power2_divisions: Bucket in MiB (1, 2, 4 …) → divisions; empty for none.
        limit_bytes: What may be reserved; None for no limit.
        device_memory_bytes: Decides how much address space an expandable segment reserves.
        small_page_bytes: Page of small expandable segments.
        large_page_bytes: Page of large ones.
        release_stranded_bytes: At a synchronisation, free pages are given back when more than this is stranded; None
            for never (no allocator of PyTorch does; a rule of automatic memory management).
        release_interval: That is looked at every n-th synchronisation.
        simulator_only_compaction: Live blocks slide together before pages are given back. No real runtime can.
    """

    pad_bytes: int = NPU_PAD_BYTES
    expandable_segments: bool = False
    base_alignment_bytes: int = 1
    max_split_size_bytes: int | None = None
    max_unsplit_rounding_bytes: int = LARGE_SEGMENT_BYTES
    garbage_collection_ratio: float | None = None
    roundup_power2_divisions: Mapping[int, int] = field(default_factory=dict)
    limit_bytes: int | None = None
    device_memory_bytes: int = 64 * GIB
    small_page_bytes: int = SMALL_SEGMENT_BYTES
    large_page_bytes: int = LARGE_SEGMENT_BYTES
    release_stranded_bytes: int | None = None
    release_interval: int = 1
    simulator_only_compaction: bool = False


class Rules(NamedTuple):
    """``CachingSettings`` for compiled code; ``UNLIMITED`` stands for None."""

    pad: int
    expandable: bool
    base_alignment: int
    max_split: int
    max_unsplit_rounding: int
    limit: int
    collect_above: int
    small_page: int
    large_page: int
    reservation: int
    release_stranded: int
    release_interval: int
    compacts: bool
    divisions: Int64Array


def rules_of(settings: CachingSettings) -> Rules:
    """Returns the settings as numbers. An expandable reservation is 9/8 of the device's memory, in whole pages."""
    limit = UNLIMITED if settings.limit_bytes is None else settings.limit_bytes
    collect = UNLIMITED
    if settings.garbage_collection_ratio is not None and settings.limit_bytes is not None:
        collect = int(settings.garbage_collection_ratio * settings.limit_bytes)
    divisions = np.zeros(ROUNDUP_BUCKETS, dtype=np.int64)
    for bucket_mib, count in settings.roundup_power2_divisions.items():
        divisions[min(int(bucket_mib).bit_length() - 1, ROUNDUP_BUCKETS - 1)] = count
    return Rules(
        pad=settings.pad_bytes,
        expandable=settings.expandable_segments,
        base_alignment=settings.base_alignment_bytes,
        max_split=UNLIMITED if settings.max_split_size_bytes is None else settings.max_split_size_bytes,
        max_unsplit_rounding=settings.max_unsplit_rounding_bytes,
        limit=limit,
        collect_above=collect,
        small_page=settings.small_page_bytes,
        large_page=settings.large_page_bytes,
        reservation=settings.device_memory_bytes * 9 // 8,
        release_stranded=UNLIMITED if settings.release_stranded_bytes is None else settings.release_stranded_bytes,
        release_interval=settings.release_interval,
        compacts=settings.simulator_only_compaction,
        divisions=divisions,
    )


@compiled
def round_up(value, unit):
    """Returns the smallest multiple of ``unit`` that is ≥ ``value``."""
    return (value + unit - 1) // unit * unit


@compiled
def rounded_size(rules, requested):
    """Returns the size of the block for a request: padded, then in steps of 512 B or of a part of a power of two."""
    size = requested + rules.pad
    if size < MIN_BLOCK_BYTES:
        return MIN_BLOCK_BYTES
    power = 1
    exponent = 0
    while power * 2 <= size:
        power *= 2
        exponent += 1
    parts = rules.divisions[min(max(exponent - 20, 0), ROUNDUP_BUCKETS - 1)]
    if parts > 1 and size > MIN_BLOCK_BYTES * parts:
        return size if size == power else round_up(size, power // parts)
    return round_up(size, MIN_BLOCK_BYTES)


@compiled
def segment_size(size):
    """Returns what is asked of the driver when no free block fits a (rounded) size."""
    if size <= SMALL_LIMIT_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < OWN_SEGMENT_FROM_BYTES:
        return LARGE_SEGMENT_BYTES
    return round_up(size, OWN_SEGMENT_ROUNDING_BYTES)


@compiled
def page_size(rules, arena):
    """Returns the page of an arena's expandable segments."""
    return rules.large_page if arena & 1 else rules.small_page
