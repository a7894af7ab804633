"""Other layouts of a simulated job that are worth a try for a loss: one change at a time."""

from engine.advisor.bottlenecks import Loss
from engine.core.errors import ScenarioError
from engine.optimizations.interface import ParameterValue
from engine.workloads.relayout import relaid, with_layout
from engine.workloads.scenario import Recompute, Scenario, Schedule

_MEMORY_ORDER = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)


def layout_variants(scenario: Scenario, loss: Loss) -> tuple[dict[str, ParameterValue], ...]:
    """Returns parameters of ``parallel.layout`` that fit a job and may win a loss back.

    Args:
        scenario: The job with everything that is on.
        loss: What it loses most time to.
    """
    own = with_layout(scenario)
    return tuple(item for item in _wanted(own, loss) if _fits(own, item))


def _wanted(own: Scenario, loss: Loss) -> list[dict[str, ParameterValue]]:
    layout, micro, recompute = own.parallel, own.batch.micro, own.memory.recompute
    larger: dict[str, ParameterValue] = {"micro": micro * 2}
    smaller: dict[str, ParameterValue] = {"micro": micro // 2}
    half_tensor: dict[str, ParameterValue] = {"tensor": layout.tensor // 2}
    half_stages: dict[str, ParameterValue] = {"pipeline": layout.pipeline // 2}
    interleaved: dict[str, ParameterValue] = {"virtual_pipeline": 2, "schedule": Schedule.INTERLEAVED.value}
    interleaves = layout.pipeline > 1 and layout.virtual_pipeline == 1
    less, more = _recompute(recompute, -1), _recompute(recompute, 1)
    choices: dict[Loss, list[dict[str, ParameterValue]]] = {
        Loss.MEMORY: [smaller, *more, {"tensor": layout.tensor * 2}, {"pipeline": layout.pipeline * 2}],
        Loss.VECTOR: [larger, *less],
        Loss.COMMUNICATION: [half_tensor, half_stages, larger],
        Loss.WAITING: [half_stages],
        Loss.BUBBLES: [smaller, half_stages, *([interleaved] if interleaves else [])],
        Loss.HOST: [larger, half_tensor],
        Loss.ALLOCATOR: [],
        Loss.CUBE: [*less, larger],
    }
    return [item for item in choices[loss] if 0 not in item.values()]


def _recompute(own: Recompute, towards: int) -> list[dict[str, ParameterValue]]:
    """Returns recomputing less (−1) or more (1) than now."""
    place = _MEMORY_ORDER.index(own)
    rest = _MEMORY_ORDER[:place] if towards < 0 else _MEMORY_ORDER[place + 1 :]
    return [{"recompute": item.value} for item in rest]


def _fits(own: Scenario, parameters: dict[str, ParameterValue]) -> bool:
    try:
        relaid(own, **parameters)  # type: ignore[arg-type]  # sizes are numbers, words are texts
    except ScenarioError:
        return False
    return True
