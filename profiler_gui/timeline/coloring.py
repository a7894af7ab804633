"""Which palette index every event has: its family by what it does, its shade by its name."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from engine.analyses.activity import Activity, activities
from engine.core.arrays import BoolArray, UInt8Array
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
_RUNTIME_CATEGORIES = frozenset(("cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "xpu_runtime"))
_PYTHON_CATEGORIES = frozenset(("python_function", "python"))
_TRANSFER_CATEGORIES = frozenset(("sdma", "rdma", "rdmasend", "reduce", "reduce_inline", "reduce_async"))
"""Stream tasks that belong to a collective and are no work of their own, where ``activities`` says so."""
_ANNOTATION_CATEGORIES = frozenset(("user_annotation", "gpu_user_annotation", "step", "annotation"))


def event_colors(trace: Trace) -> UInt8Array:
    """Returns the palette index of every event, uint8, shape (events,), without dimming."""
    families = event_families(trace)
    shade_of_name = _shades(trace.strings.data, trace.strings.offsets)
    name = trace.events.name
    shade = shade_of_name[np.maximum(name, 0)] if len(shade_of_name) else np.zeros(len(name), dtype=np.uint8)
    return families * np.uint8(SHADES) + shade


def event_families(trace: Trace) -> UInt8Array:
    """Returns the Family of every event, uint8, shape (events,)."""
    events = trace.events
    kinds = np.array([_BY_KIND.get(track.kind, Family.OTHER) for track in trace.tracks], dtype=np.uint8)
    families = kinds[events.track] if len(kinds) else np.empty(0, dtype=np.uint8)
    on_host = families == Family.HOST
    for categories, family in (
        (_RUNTIME_CATEGORIES, Family.RUNTIME),
        (_PYTHON_CATEGORIES, Family.PYTHON),
        (_ANNOTATION_CATEGORIES, Family.ANNOTATION),
    ):
        families[on_host & _with_text(trace.strings, events.category, categories.__contains__)] = family
    activity = activities(trace)
    for value, family in _BY_ACTIVITY.items():
        families[activity == value] = family
    _color_overlap(trace, families)
    inside = _with_text(trace.strings, events.category, _TRANSFER_CATEGORIES.__contains__)
    families[(families == Family.OTHER) & inside] = Family.TRANSFER
    steps = _with_text(trace.strings, events.name, lambda text: text.startswith("profilerstep#"))
    families[steps] = Family.ANNOTATION
    planes = trace.events_of(TrackKind.COMMUNICATION_PLANE)
    waits = _with_text(trace.strings, events.name[planes], lambda text: text.startswith("notify"))
    families[planes[waits]] = Family.SYNCHRONIZATION
    return families


def dimmed(color: UInt8Array, is_match: BoolArray) -> UInt8Array:
    """Returns the colours with all but the matches dimmed; both of shape (n,)."""
    return np.where(is_match, color, color | np.uint8(DIMMED))


def _color_overlap(trace: Trace, families: UInt8Array) -> None:
    """The profiler's own overlap lanes are named after what they show."""
    rows = trace.events_of(TrackKind.OVERLAP)
    for word, family in (
        ("comput", Family.COMPUTING),
        ("communication", Family.COMMUNICATION),
        ("memory", Family.MEMORY),
        ("free", Family.IDLE),
        ("idle", Family.IDLE),
    ):

        def starts(text: str, word: str = word) -> bool:
            return text.startswith(word)

        families[rows[_with_text(trace.strings, trace.events.name[rows], starts)]] = family


def _with_text(strings: StringTable, ids: Any, wanted: Callable[[str], bool]) -> BoolArray:
    """Returns which ids stand for a wanted text (compared in lower case); bool, shape of ``ids``."""
    if len(ids) == 0:
        return np.zeros(0, dtype=np.bool_)
    used = np.zeros(len(strings) + 1, dtype=np.bool_)
    used[ids] = True
    # A loop over distinct texts, not over events; the last place stands for the absent id −1.
    for index in np.flatnonzero(used[:-1]).tolist():
        used[index] = wanted(strings.text(index).lower())
    used[-1] = False
    found: BoolArray = used[ids]
    return found


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
