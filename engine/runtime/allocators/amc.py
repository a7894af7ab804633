"""Automatic memory management: a JSON file of rules over mechanisms a real runtime has.

* ``classes``: lifetime class of each buffer tag; every class has segments of its own, so that what lives long does not
  pin what does not.
* ``reuse``: which tags' blocks are planned: what a step allocates and frees of them gets offsets in one range, so that
  memory is used again as lifetimes allow, not as requests happen to come. ``search`` looks for a lower plan than the
  greedy and best-fit orders reach.
* ``expandable_segments``: whether segments grow by pages, which can be given back one by one.
* ``defragmentation``: at every n-th synchronisation with the device, free pages and segments are given back when more
  than so many MiB are stranded.

None of these moves a live tensor: kernels hold raw pointers. ``simulator_only_compaction`` does, before memory is given
back: it is what only a simulator can do, never a default, and labelled so wherever a run with it is shown.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.core.errors import EngineError
from engine.core.units import MIB
from engine.graph.task_graph import BufferTag
from engine.runtime.allocators.caching import CACHING, EXPANDABLE, CachingAllocator
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.interface import Allocator
from engine.runtime.allocators.planned import PLAN_EFFORT, PlannedAllocator

_TAGS = tuple(tag.name.lower() for tag in BufferTag)
_KEYS = ("format", "classes", "reuse", "expandable_segments", "defragmentation", "simulator_only_compaction")
_PLANNED_TAGS = (BufferTag.STEP.name.lower(), BufferTag.TEMPORARY.name.lower())
"""What steps free again; the rest outlives them."""
_REUSE_KEYS = ("plan", "search")
_DEFRAGMENTATION_KEYS = ("release_stranded_mib", "interval_synchronizations")


@dataclass(frozen=True, slots=True)
class AmcRules:
    """The rules of one file.

    Attributes:
        class_of_tag: Lifetime class of every ``BufferTag``.
        expandable_segments: Whether segments grow by pages.
        release_stranded_bytes: Free pages are given back at a synchronisation when more is stranded; None for never.
        interval_synchronizations: Look at every n-th synchronisation only.
        simulator_only_compaction: Whether live blocks slide together first, which no real runtime can do.
        planned_tags: ``BufferTag`` of the blocks that get planned offsets; () for none.
        searches_plan: Whether a lower plan is searched for.
    """

    class_of_tag: tuple[int, ...]
    expandable_segments: bool
    release_stranded_bytes: int | None
    interval_synchronizations: int
    simulator_only_compaction: bool = False
    planned_tags: tuple[int, ...] = ()
    searches_plan: bool = False


def default_amc_rules() -> AmcRules:
    """Returns the rules that come with the product (``data/amc.json``; every number in it is assumed)."""
    text = files("engine.runtime.allocators").joinpath("data/amc.json").read_text(encoding="utf-8")
    return parse_amc_rules(text, "the built-in rules")


def read_amc_rules(path: Path) -> AmcRules:
    """Returns the rules of a file. Raises EngineError that names the file and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read: {error}; give a JSON file of memory management rules"
        raise EngineError(message) from error
    return parse_amc_rules(text, str(path))


def parse_amc_rules(text: str, source: str) -> AmcRules:
    """Returns the rules in JSON ``text``; ``source`` is named in errors. Raises EngineError."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{source}: no JSON: {error}"
        raise EngineError(message) from error
    rules = _object(content, source, "the file")
    _check_keys(rules, _KEYS, source)
    classes = _object(rules.get("classes", {}), source, "classes")
    _check_keys(classes, _TAGS, source)
    defragmentation = _object(rules.get("defragmentation", {}), source, "defragmentation")
    _check_keys(defragmentation, _DEFRAGMENTATION_KEYS, source)
    stranded_mib = defragmentation.get("release_stranded_mib")
    limit = None if stranded_mib is None else _integer(stranded_mib, 0, source, "release_stranded_mib") * MIB
    interval = _integer(defragmentation.get("interval_synchronizations", 1), 1, source, "interval_synchronizations")
    planned, searches = _reuse(_object(rules.get("reuse", {}), source, "reuse"), source)
    compacts = rules.get("simulator_only_compaction", False)
    if not isinstance(compacts, bool) or (compacts and limit is None):
        message = f"{source}: simulator_only_compaction must be true or false, true only with release_stranded_mib"
        raise EngineError(message)
    return AmcRules(
        class_of_tag=tuple(_integer(classes.get(tag, 0), 0, source, f"classes.{tag}") for tag in _TAGS),
        expandable_segments=bool(rules.get("expandable_segments", True)),
        release_stranded_bytes=limit,
        interval_synchronizations=interval,
        simulator_only_compaction=compacts,
        planned_tags=planned,
        searches_plan=searches,
    )


def _reuse(reuse: Mapping[str, Any], source: str) -> tuple[tuple[int, ...], bool]:
    """Returns the tags that are planned, and whether a lower plan is searched for."""
    _check_keys(reuse, _REUSE_KEYS, source)
    names, searches = reuse.get("plan", []), reuse.get("search", False)
    if not isinstance(names, list) or any(name not in _PLANNED_TAGS for name in names):
        message = f"{source}: reuse.plan must be a list of {' and '.join(_PLANNED_TAGS)}, which steps free again"
        raise EngineError(message)
    if not isinstance(searches, bool):
        message = f"{source}: reuse.search must be true or false, not {searches!r:.40}"
        raise EngineError(message)
    return tuple(sorted({int(BufferTag[name.upper()]) for name in names})), searches


def amc_settings(rules: AmcRules, limit_bytes: int | None = None) -> CachingSettings:
    """Returns the caching allocator's settings under the rules."""
    return replace(
        EXPANDABLE if rules.expandable_segments else CACHING,
        limit_bytes=limit_bytes,
        release_stranded_bytes=rules.release_stranded_bytes,
        release_interval=rules.interval_synchronizations,
        simulator_only_compaction=rules.simulator_only_compaction,
    )


def amc_allocator(rules: AmcRules, *, stream_count: int = 1, limit_bytes: int | None = None) -> Allocator:
    """Returns an allocator that follows the rules."""
    settings, classes = amc_settings(rules, limit_bytes), rules.class_of_tag
    if not rules.planned_tags:
        return CachingAllocator(settings, stream_count=stream_count, class_of_tag=classes)
    return PlannedAllocator(
        settings,
        stream_count=stream_count,
        effort=PLAN_EFFORT if rules.searches_plan else 0.0,
        planned_tags=rules.planned_tags,
        class_of_tag=classes,
    )


def _object(value: Any, source: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        message = f"{source}: {what} must be a JSON object"
        raise EngineError(message)
    return value


def _check_keys(found: Mapping[str, Any], known: tuple[str, ...], source: str) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0)
            message = f"{source}: unknown key {key!r}; did you mean {near[0]!r}?"
            raise EngineError(message)


def _integer(value: Any, least: int, source: str, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1 << 40:
        message = f"{source}: {what} must be a whole number of at least {least}, not {value!r:.40}"
        raise EngineError(message)
    return value
