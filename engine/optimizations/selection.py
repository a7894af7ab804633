"""What is switched on: parsed, completed with defaults, checked for conflicts, in the order it is applied."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.core.errors import ScenarioError
from engine.core.registry import Registry
from engine.optimizations.catalogue import in_order
from engine.optimizations.interface import Optimization, Parameter, Parameters, ParameterValue
from engine.workloads.overrides import parsed
from engine.workloads.scenario_keys import nearest


@dataclass(frozen=True, slots=True)
class Enabled:
    """An optimization that is switched on, with every parameter."""

    optimization: Optimization
    parameters: Parameters

    @property
    def id(self) -> str:
        """Of the optimization."""
        return self.optimization.id

    @property
    def text(self) -> str:
        """As ``--enable`` takes it; parameters at their default are left out."""
        chosen = {key: value for key, value in self.parameters.items() if value != self.optimization.defaults[key]}
        listed = ",".join(f"{key}={_written(value)}" for key, value in chosen.items())
        return f"{self.id}:{listed}" if listed else self.id


def enabled_from_texts(texts: Iterable[str], registry: Registry[Optimization]) -> tuple[Enabled, ...]:
    """Returns what ``ID`` or ``ID:key=value,…`` texts switch on, in the order it is applied.

    Raises:
        ScenarioError: An unknown id or parameter, or a value out of range.
    """
    chosen: dict[str, dict[str, ParameterValue]] = {}
    for text in texts:
        identifier, _, rest = text.partition(":")
        values = {}
        for part in filter(None, rest.split(",")):
            key, separator, value = part.partition("=")
            if not separator:
                raise ScenarioError(f"--enable {text}: write parameters as key=value, separated by commas")
            values[key.strip()] = parsed(value.strip())
        chosen[identifier] = values
    return enabled(chosen, registry)


def enabled(
    chosen: Mapping[str, Mapping[str, ParameterValue]], registry: Registry[Optimization]
) -> tuple[Enabled, ...]:
    """Returns the chosen optimizations with all parameters, in the order they are applied.

    Raises:
        ScenarioError: An unknown id or parameter, or a value out of range.
    """
    for identifier in chosen:
        if identifier not in registry:
            known = [item.id for item in registry]
            raise ScenarioError(f"--enable {identifier}: not an optimization; {nearest(identifier, known)}")
    return tuple(Enabled(item, _completed(item, chosen[item.id])) for item in in_order(registry) if item.id in chosen)


def _completed(optimization: Optimization, values: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    complete = optimization.defaults
    for name, value in values.items():
        if name not in complete:
            hint = nearest(name, complete) if complete else "it has none"
            raise ScenarioError(f"{optimization.id}: {name} is not one of its parameters; {hint}")
        complete[name] = _checked(optimization, optimization.parameter(name), value)
    return complete


def _checked(optimization: Optimization, parameter: Parameter, value: ParameterValue) -> ParameterValue:
    where = f"{optimization.id}: {parameter.name} = {value!r}"
    default = parameter.default
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default):
        raise ScenarioError(f"{where} must be {_kind(default)}")
    if parameter.choices and value not in parameter.choices:
        raise ScenarioError(f"{where} is no choice; {nearest(str(value), parameter.choices)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = parameter.minimum, parameter.maximum
        if (low is not None and value < low) or (high is not None and value > high) or value != value:
            bounds = f"{'' if low is None else f'at least {low:g}'}{'' if high is None else f' at most {high:g}'}"
            raise ScenarioError(f"{where} is out of range; {bounds.strip()}")
    return value


def _kind(default: ParameterValue) -> str:
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int):
        return "a whole number"
    return "a number" if isinstance(default, float) else "text"


def _written(value: ParameterValue) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something cannot be switched on.

    Attributes:
        id: Of the optimization.
        reason: One sentence.
    """

    id: str
    reason: str


def refusals(chosen: Iterable[Enabled], environment: Mapping[str, str]) -> tuple[Refusal, ...]:
    """Returns what conflicts: with each other, with switches the job has on, or misses what it needs.

    Args:
        chosen: What is switched on.
        environment: Environment variables of the recorded job; empty for a simulated one.
    """
    items = tuple(chosen)
    ids = {item.id for item in items}
    found = []
    for item in items:
        for conflict in item.optimization.conflicts:
            kind, _, setting = conflict.other.partition("environment:")
            clashes = _is_set(setting, environment) if not kind and setting else conflict.other in ids
            if clashes:
                found.append(
                    Refusal(item.id, f"{item.id} conflicts with {setting or conflict.other}: {conflict.reason}")
                )
        missing = [needed for needed in item.optimization.needs if needed not in ids]
        if missing:
            found.append(Refusal(item.id, f"{item.id} needs {' and '.join(missing)} switched on with it"))
    return tuple(found)


def _is_set(setting: str, environment: Mapping[str, str]) -> bool:
    """Returns whether ``NAME=word`` holds: the variable is that word, or lists it among others."""
    name, _, word = setting.partition("=")
    value = environment.get(name)
    return value is not None and word in value.replace(" ", "").split(",")
