"""Which allocator a capture was recorded under: what its environment says."""

import re
from dataclasses import replace

from engine.core.units import MIB
from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE, EXPANDABLE_CUDA
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.trace.trace import Trace

_NPU_VARIABLE = "PYTORCH_NPU_ALLOC_CONF"
_CUDA_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_OPTION = re.compile(r"([a-z_0-9]+):(\[[^]]*\]|[^,]+)")


def capture_policy(trace: Trace) -> AllocatorPolicy:
    """Returns the policy a capture names in its environment; defaults where it names none.

    Kineto and Chrome traces are CUDA's, all others torch_npu's.
    """
    ascend = trace.source.format not in ("kineto", "chrome")
    variables = (_NPU_VARIABLE,) if ascend else _CUDA_VARIABLES
    text = next((found for name in variables if (found := trace.metadata.environment.get(name))), "")
    options = {key: value.strip() for key, value in _OPTION.findall(text)}
    expandable = options.get("expandable_segments", "").lower() == "true"
    if expandable:
        base = EXPANDABLE if ascend else EXPANDABLE_CUDA
        title = f"{'torch_npu' if ascend else 'PyTorch CUDA'} with expandable segments"
        return AllocatorPolicy("expandable", title, _configured(base, options))
    if ascend:
        return AllocatorPolicy("caching", "torch_npu's caching allocator", _configured(CACHING, options))
    return AllocatorPolicy("caching-cuda", "PyTorch's CUDA caching allocator", _configured(CACHING_CUDA, options))


def _configured(base: CachingSettings, options: dict[str, str]) -> CachingSettings:
    """Returns the settings with the options that decide addresses; what cannot be read keeps its default.

    A garbage collection threshold acts on a limit only, which no capture names.
    """
    split_mib = options.get("max_split_size_mb", "")
    return replace(
        base,
        max_split_size_bytes=int(split_mib) * MIB if split_mib.isdecimal() else None,
        roundup_power2_divisions=_divisions(options.get("roundup_power2_divisions", "")),
    )


def _divisions(text: str) -> dict[int, int]:
    """Returns bucket in MiB → divisions of ``4`` (all buckets) or ``[256:1,512:2,>:4]``."""
    buckets = [1 << exponent for exponent in range(16)]
    if text.isdecimal():
        return dict.fromkeys(buckets, int(text))
    found: dict[int, int] = {}
    for bucket, count in re.findall(r"(\d+|>):(\d+)", text):
        above = [size for size in buckets if size > max(found, default=0)]
        found.update(dict.fromkeys(above, int(count)) if bucket == ">" else {int(bucket): int(count)})
    return {bucket: count for bucket, count in found.items() if count > 1}
