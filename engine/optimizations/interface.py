"""What an optimization is: parameters, where it applies, how it is switched on for real, and two pure functions.

``on_scenario`` rewrites a simulated job's description, ``on_capture`` the tasks of a recorded one. Neither changes its
argument, so undoing is leaving it out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from engine.devices.spec import DeviceSpec
from engine.graph.task_graph import TaskGraph
from engine.replay.allocation_edit import AllocationEdit as AllocationEdit
from engine.replay.capture_graph import CaptureGraph
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.workloads.scenario import Scenario

ParameterValue: TypeAlias = bool | int | float | str
Parameters: TypeAlias = Mapping[str, ParameterValue]
"""Every parameter of an optimization by name; defaults are filled in before anything sees them."""


class Group(StrEnum):
    """Families of optimizations, in the order they are applied."""

    PARALLEL = "parallel"
    PRECISION = "precision"
    FUSION = "fusion"
    COMMUNICATION = "communication"
    HOST = "host"
    MEMORY = "memory"
    SERVING = "serving"


class Verdict(StrEnum):
    """Whether an optimization does something to a job."""

    APPLIES = "applies"
    NO_EFFECT = "no effect"
    ALREADY_ON = "already on"
    NEEDS_TWIN = "needs a simulated twin"
    UNKNOWN = "cannot be answered"


class Bound(StrEnum):
    """Which end of the range of a prediction is asked for."""

    LOW = "low"
    """The least gain that is plausible."""
    EXPECTED = "expected"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Applicability:
    """Whether and why.

    Attributes:
        verdict: In one word.
        reason: One sentence without full stop, with the number that decided ("57 AdamW kernels run one by one").
    """

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something about an optimization the user may choose.

    Attributes:
        name: As in ``id:name=value`` and in a scenario file.
        title: For people, with the unit.
        default: Also decides the type.
        minimum: Smallest number, None for no limit.
        maximum: Largest number, None for no limit.
        choices: The only words allowed; empty for any.
        provenance: Where the default comes from.
    """

    name: str
    title: str
    default: ParameterValue
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    provenance: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """How a user turns it on for real.

    Attributes:
        framework: ``"torch_npu"``, ``"MindSpeed"`` …
        versions: Oldest and newest known to have it, as documented; "" where documentation names none.
        switch: Exactly what to set, call or write.
        documented_in: File or page.
        note: Requirement or side effect, "" for none.
    """

    framework: str
    versions: str
    switch: str
    documented_in: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """What cannot be on together.

    Attributes:
        other: Id of an optimization, or ``"environment:NAME=value"`` for a switch a capture may have on.
        reason: One sentence without full stop.
    """

    other: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class CapturePlan:
    """A capture with what has been changed so far.

    Attributes:
        capture: As recorded.
        graph: The tasks as rewritten.
        device: The device's figures, None where it is not known.
        allocator: Policy the memory log is replayed under; None for the recorded one.
        edits: By rank: changes of the memory log.
        assumptions: What the changes rest on, for people.
    """

    capture: CaptureGraph
    graph: TaskGraph
    device: DeviceSpec | None = None
    allocator: AllocatorPolicy | None = None
    edits: Mapping[int, AllocationEdit] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()


ScenarioCheck: TypeAlias = Callable[[Scenario, Parameters], Applicability]
ScenarioChange: TypeAlias = Callable[[Scenario, Parameters], Scenario]
CaptureCheck: TypeAlias = Callable[[CapturePlan, Parameters], Applicability]
CaptureChange: TypeAlias = Callable[[CapturePlan, Parameters, Bound], CapturePlan]


@dataclass(frozen=True, slots=True)
class Optimization:
    """Something that can be switched on.

    Attributes:
        id: As in CLI.md.
        title: For people.
        group: Its family.
        summary: What it changes, one or two sentences.
        parameters: What can be chosen.
        switches: The real switches; empty only where ``simulator_only``.
        on_scenario: Rewrites a simulated job; raises ScenarioError for what cannot be.
        check_scenario: Whether it does something to a simulated job.
        on_capture: Rewrites a capture; is only called where ``check_capture`` says APPLIES.
        check_capture: Whether it does something to a capture.
        conflicts: What cannot be on with it (stated once per pair, checked both ways).
        needs: Ids that must be on with it.
        simulator_only: Its name or mechanism is not in public documentation: never ranked in advice on a capture.
        risk: Accuracy, memory, stability, determinism.
        undo: How to turn it off for real.
        verify: Which number to read again, and after how many warm steps.
        provenance: Of constants the functions use; "" where they use none.
    """

    id: str
    title: str
    group: Group
    summary: str
    parameters: tuple[Parameter, ...]
    switches: tuple[Switch, ...]
    on_scenario: ScenarioChange
    check_scenario: ScenarioCheck
    on_capture: CaptureChange
    check_capture: CaptureCheck
    conflicts: tuple[Conflict, ...] = ()
    needs: tuple[str, ...] = ()
    simulator_only: bool = False
    risk: str = ""
    undo: str = ""
    verify: str = ""
    provenance: str = ""

    def parameter(self, name: str) -> Parameter:
        """Returns a parameter by name; KeyError where there is none."""
        for item in self.parameters:
            if item.name == name:
                return item
        raise KeyError(name)

    @property
    def defaults(self) -> dict[str, ParameterValue]:
        """Every parameter at its default."""
        return {item.name: item.default for item in self.parameters}
