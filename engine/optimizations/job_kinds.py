"""Which optimizations are about which kind of job: the one place where training and serving are told apart."""

from dataclasses import replace

from engine.optimizations.answers import no_effect
from engine.optimizations.interface import Applicability, Group, Optimization, Parameters
from engine.optimizations.serving.graph_mode import check_served_graph_mode
from engine.workloads.scenario import Scenario, WorkloadKind

_OF_BOTH = {"host.graph_mode": check_served_graph_mode}
"""What acts on training and on services, with the check for services."""


def checked_by_kind(optimization: Optimization) -> Optimization:
    """Returns an optimization whose scenario check first looks whether it is about that kind of job."""
    is_serving = optimization.group is Group.SERVING

    def check(scenario: Scenario, parameters: Parameters) -> Applicability:
        if scenario.kind is WorkloadKind.TRAINING:
            if is_serving:
                return no_effect("the job trains; this is about serving requests")
            return optimization.check_scenario(scenario, parameters)
        if is_serving:
            return optimization.check_scenario(scenario, parameters)
        served = _OF_BOTH.get(optimization.id)
        if served is not None:
            return served(scenario, parameters)
        return no_effect("the job serves requests; this is about steps of training")

    return replace(optimization, check_scenario=check)
