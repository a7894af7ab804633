"""What the advisor looks for: one module per family; plug-ins come through entry points."""

from engine.advisor.rules import (
    allocator,
    communication,
    configuration,
    course,
    fusion,
    host,
    links,
    memory,
    operators,
    pipeline,
    recording,
    service,
    service_jitter,
    training,
    waiting,
)
from engine.advisor.rules.rule import Rule
from engine.core.registry import Registry

__all__ = ["ENTRY_POINTS", "Rule", "rule_registry"]

ENTRY_POINTS = "cannscope.rules"


def rule_registry() -> Registry[Rule]:
    """Returns every built-in and installed rule. Raises PluginError for an id that is taken."""
    of_the_run = (configuration, course, memory, allocator)
    of_the_step = (communication, waiting, links, pipeline, fusion, host, recording, operators, training)
    families = (*of_the_run, *of_the_step, service, service_jitter)
    return Registry([rule for family in families for rule in family.RULES], ENTRY_POINTS)
