"""Which palette index every event has: its family by what it does, its shade by its name."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
import numpy as np

from engine.analyses.activity import Activity, activities
from engine.core.arrays import BoolArray, Int32Array, UInt8Array
from engine.trace import StringTable, Trace, TrackKind
from profiler_gui.timeline.palette import DIMMED, SHADES, Family

_BY_KIND = {
    TrackKind.HOST_THREAD: Family.HOST,
    TrackKind.CANN_THREAD: Family.RUNTIME,
    TrackKind.DEVICE_STREAM: Family.OTHER,
    TrackKind.COMMUNICATION_GROUP: Family.COMMUNICATION,
    TrackKind.COMMUNICATION_PLANE: Family.TRANSFER,
    TrackKind.OVERLAP: Family.OTHER,
    TrackKind.ANNOTATION: Family.ANNOTATION,
}
_BY_ACTIVITY = {
    Activity.COMPUTING: Family.COMPUTING,
    Activity.COMMUNICATION: Family.COMMUNICATION,
    Activity.MEMORY: Family.MEMORY,
    Activity.SYNCHRONIZATION: Family.SYNCHRONIZATION,
}
_BY_CATEGORY = {
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "xpu_runtime"), Family.RUNTIME),
    **dict.fromkeys(("python_function", "python"), Family.PYTHON),
    **dict.fromkeys(("user_annotation", "gpu_user_annotation", "step", "annotation"), Family.ANNOTATION),
    # Stream tasks that belong to a collective and are no work of their own, where ``activities`` says so.
    **dict.fromkeys(("sdma", "rdma", "rdmasend", "reduce", "reduce_inline", "reduce_async"), Family.TRANSFER),
}
_OVERLAP_WORDS = (
    ("comput", Family.COMPUTING),
    ("communication", Family.COMMUNICATION),
    ("memory", Family.MEMORY),
    ("free", Family.IDLE),
    ("idle", Family.IDLE),
)
_NO_FAMILY = 255
# Kernels take plain numbers.
_HOST, _OTHER, _TRANSFER = int(Family.HOST), int(Family.OTHER), int(Family.TRANSFER)


class EventColors:
    """The palette index of every event of a trace, worked out when first asked for; ask from one thread only.

    Args:
        trace: Whose events.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def values(self) -> UInt8Array:
        """uint8, shape (events,), without dimming."""
        return event_colors(self._trace)


def event_colors(trace: Trace) -> UInt8Array:
    """Returns the palette index of every event, uint8, shape (events,), without dimming."""
    colors = event_families(trace)
    if len(colors):
        _add_shades(colors, trace.events.name, _shades(trace.strings.data, trace.strings.offsets))
    return colors


def event_families(trace: Trace) -> UInt8Array:
    """Returns the Family of every event, uint8, shape (events,)."""
    events = trace.events
    kinds = np.array([_BY_KIND.get(track.kind, Family.OTHER) for track in trace.tracks], dtype=np.uint8)
    by_activity = np.full(len(Activity), _NO_FAMILY, dtype=np.uint8)
    for activity, family in _BY_ACTIVITY.items():
        by_activity[activity] = family
    families = np.empty(len(events), dtype=np.uint8)
    by_category = _families_of_categories(trace)
    _decide(events.track, events.category, activities(trace), kinds, by_category, by_activity, families)
    for kind, decide in ((TrackKind.OVERLAP, _overlap_family), (TrackKind.COMMUNICATION_PLANE, _plane_family)):
        rows = trace.events_of(kind)
        by_name = _by_text(trace.strings, events.name[rows], decide)
        families[rows] = np.where(by_name == _NO_FAMILY, families[rows], by_name)
    steps = np.isin(events.name, _starting_with(trace.strings, b"ProfilerStep#"))
    families[steps] = Family.ANNOTATION
    return families


def dimmed(color: UInt8Array, is_match: BoolArray) -> UInt8Array:
    """Returns the colours with all but the matches dimmed; both of shape (n,)."""
    return np.where(is_match, color, color | np.uint8(DIMMED))


def _families_of_categories(trace: Trace) -> UInt8Array:
    """Returns the family that each category stands for; place 0 is for the absent category −1."""
    by_category = np.full(len(trace.strings) + 1, _NO_FAMILY, dtype=np.uint8)
    used = np.flatnonzero(np.bincount(trace.events.category + 1, minlength=1)[1:])
    # A loop over the few distinct categories.
    for index in used.tolist():
        by_category[index + 1] = _BY_CATEGORY.get(trace.strings.text(index).lower(), _NO_FAMILY)
    return by_category


def _overlap_family(name: str) -> int:
    """The profiler's own overlap lanes are named after what they show."""
    return next((family for word, family in _OVERLAP_WORDS if name.startswith(word)), _NO_FAMILY)


def _plane_family(name: str) -> int:
    return Family.SYNCHRONIZATION if name.startswith("notify") else _NO_FAMILY


def _by_text(strings: StringTable, ids: Int32Array, decide: Callable[[str], int]) -> UInt8Array:
    """Returns what ``decide`` says of each text in lower case; uint8, shape of ``ids``."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    decided = np.array([decide(strings.text(index).lower()) for index in distinct.tolist()], dtype=np.uint8)
    found: UInt8Array = decided[inverse]
    return found


def _starting_with(strings: StringTable, prefix: bytes) -> Int32Array:
    """Returns the ids of the strings that start so, found in the block of all strings at once."""
    block = strings.data.tobytes()
    hits = np.array([match.start() for match in re.finditer(re.escape(prefix), block)], dtype=np.int64)
    ids = np.searchsorted(strings.offsets, hits, side="right") - 1
    found: Int32Array = ids[strings.offsets[ids] == hits].astype(np.int32)
    return found


@numba.njit(cache=True, nogil=True)
def _decide(
    track: Any, category: Any, activity: Any, kinds: Any, by_category: Any, by_activity: Any, families: Any
) -> Any:
    for event in range(len(track)):
        family = kinds[track[event]]
        said = by_category[category[event] + 1]
        worked = by_activity[activity[event]]
        if worked != _NO_FAMILY:
            family = worked
        elif (family == _HOST and said != _NO_FAMILY and said != _TRANSFER) or (family == _OTHER and said == _TRANSFER):
            family = said
        families[event] = family


@numba.njit(cache=True, nogil=True)
def _add_shades(families: Any, name: Any, shade_of_name: Any) -> Any:
    for event in range(len(families)):
        shade = shade_of_name[name[event]] if name[event] >= 0 else 0
        families[event] = families[event] * SHADES + shade


@numba.njit(cache=True, nogil=True)
def _shades(data: Any, offsets: Any) -> Any:
    """Returns a shade per string by FNV-1a over its bytes: equal in every run and every capture."""
    shade = np.empty(len(offsets) - 1, np.uint8)
    for index in range(len(shade)):
        digest = np.uint32(2166136261)
        for position in range(offsets[index], offsets[index + 1]):
            digest = np.uint32((digest ^ np.uint32(data[position])) * np.uint32(16777619))
        shade[index] = (digest ^ (digest >> np.uint32(16))) % np.uint32(SHADES)
    return shade
