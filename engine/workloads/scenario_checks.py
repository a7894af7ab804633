"""Whether a scenario can run at all; errors name the field and the nearest values that would work."""

from collections.abc import Callable, Iterable

from engine.core.errors import ScenarioError
from engine.workloads.scenario import LengthDistribution, OutOfMemoryPolicy, Scenario, Schedule, WorkloadKind


def check_scenario(scenario: Scenario) -> None:
    """Raises ScenarioError for the first thing that does not fit."""
    _check_world(scenario)
    _check_model_split(scenario)
    _check_stages(scenario)
    _check_experts(scenario)
    if scenario.kind is WorkloadKind.TRAINING:
        _check_batch(scenario)
        _check_run(scenario)


def nearest_values(value: int, fits: Callable[[int], bool], limit: int) -> str:
    """Returns the nearest values at and around ``value`` (1…limit) that fit, as a phrase."""
    below = next((item for item in range(min(value, limit), 0, -1) if fits(item)), None)
    above = next((item for item in range(value + 1, limit + 1) if fits(item)), None)
    found = [str(item) for item in (below, above) if item is not None]
    return f"nearest that fit: {' or '.join(found)}" if found else "no value fits"


def _check_world(scenario: Scenario) -> None:
    layout, count = scenario.parallel, scenario.device_count
    if layout.world_size != count:
        replica = layout.tensor * layout.pipeline * layout.context
        message = (
            f"parallel: data {layout.data} × tensor {layout.tensor} × pipeline {layout.pipeline} × context "
            f"{layout.context} is {layout.world_size} devices, device.count is {count}; "
        )
        if count % replica == 0:
            message += f"parallel.data = {count // replica} would fit, or device.count = {layout.world_size}"
        else:
            message += f"device.count must be a multiple of {replica}: {_multiples(count, replica)}"
        raise ScenarioError(message)


def _multiples(value: int, unit: int) -> str:
    below = value // unit * unit
    return " or ".join(str(item) for item in (below, below + unit) if item > 0)


def _check_model_split(scenario: Scenario) -> None:
    model, layout = scenario.model, scenario.parallel
    cases: Iterable[tuple[str, int, str, int]] = (
        ("tensor", layout.tensor, "heads", model.heads),
        ("tensor", layout.tensor, "vocab", -(-model.vocab // layout.tensor) * layout.tensor),
        ("tensor", layout.tensor, "ffn", model.ffn),
    )
    for field, parts, what, size in cases:
        if size % parts:
            fits = nearest_values(parts, lambda item, size=size: size % item == 0, size)  # type: ignore[misc]
            raise ScenarioError(f"parallel.{field} = {parts} does not divide the model's {size} {what}; {fits}")
    kv_fits = model.kv_heads % layout.tensor == 0 or layout.tensor % model.kv_heads == 0
    if not kv_fits:
        fits = nearest_values(
            layout.tensor,
            lambda item: model.heads % item == 0 and (model.kv_heads % item == 0 or item % model.kv_heads == 0),
            model.heads,
        )
        message = f"parallel.tensor = {layout.tensor} does not divide the model's {model.kv_heads} kv_heads; {fits}"
        raise ScenarioError(message)


def _check_stages(scenario: Scenario) -> None:
    layers, layout = scenario.model.layers, scenario.parallel
    chunks = layout.pipeline * layout.virtual_pipeline
    if layers % chunks:
        field, value = ("pipeline", layout.pipeline)
        other = layout.virtual_pipeline
        if layers % layout.pipeline == 0:
            field, value, other = "virtual_pipeline", layout.virtual_pipeline, layout.pipeline
        fits = nearest_values(value, lambda item: layers % (item * other) == 0, layers)
        message = f"parallel.{field} = {value} leaves stages unequal: {layers} layers over {chunks} chunks; {fits}"
        raise ScenarioError(message)
    if layout.virtual_pipeline > 1 and layout.schedule is not Schedule.INTERLEAVED:
        message = (
            f'parallel.virtual_pipeline = {layout.virtual_pipeline} needs parallel.schedule = "interleaved", '
            f"not {layout.schedule.value!r}"
        )
        raise ScenarioError(message)


def _check_experts(scenario: Scenario) -> None:
    model, layout = scenario.model, scenario.parallel
    if layout.expert == 1:
        return
    if not model.experts:
        raise ScenarioError(f"parallel.expert = {layout.expert}, but model {model.id} has no experts; set it to 1")
    members = layout.data * layout.context
    fits = nearest_values(
        layout.expert, lambda item: model.experts % item == 0 and members % item == 0, min(model.experts, members)
    )
    if model.experts % layout.expert:
        raise ScenarioError(f"parallel.expert = {layout.expert} does not divide {model.experts} experts; {fits}")
    if members % layout.expert:
        raise ScenarioError(f"parallel.expert = {layout.expert} does not divide data × context = {members}; {fits}")


def _check_batch(scenario: Scenario) -> None:
    batch, layout = scenario.batch, scenario.parallel
    unit = batch.micro * layout.data
    if batch.global_sequences % unit:
        message = (
            f"batch.global = {batch.global_sequences} is not divisible by micro {batch.micro} × data {layout.data}; "
            f"nearest that fit: {_multiples(batch.global_sequences, unit)}"
        )
        raise ScenarioError(message)
    if layout.schedule is Schedule.INTERLEAVED and layout.pipeline > 1:
        count = scenario.micro_batch_count
        if count % layout.pipeline:
            unit *= layout.pipeline
            message = (
                f"batch.global gives {count} micro-batches, which the interleaved schedule needs as a multiple of "
                f"pipeline {layout.pipeline}; nearest batch.global: {_multiples(batch.global_sequences, unit)}"
            )
            raise ScenarioError(message)
    split = layout.context * (layout.tensor if layout.sequence_parallel else 1)
    lengths = batch.lengths
    if lengths.distribution is LengthDistribution.FIXED and int(lengths.mean) % split:
        message = (
            f"batch.sequence_length = {int(lengths.mean)} cannot be split over {split} devices (context × tensor with "
            f"sequence_parallel); nearest that fit: {_multiples(int(lengths.mean), split)}"
        )
        raise ScenarioError(message)


def _check_run(scenario: Scenario) -> None:
    run = scenario.run
    late = [step for step in run.profile_steps if step >= run.steps]
    if late:
        message = (
            f"run.profile_steps names step {late[0]}, but run.steps = {run.steps}; the last step is {run.steps - 1}"
        )
        raise ScenarioError(message)
    if scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT and scenario.parallel.pipeline > 1:
        message = (
            'memory.on_out_of_memory = "split" needs parallel.pipeline = 1: a stage cannot split a micro-batch that '
            'other stages hold; use "abort"'
        )
        raise ScenarioError(message)
