"""How the host hands operators to the device: through a task queue of two threads, or a captured graph at once.

The host time of an eager operator in a device's data file is that of the task queue at level 1, torch_npu's default. An
operator's work has three parts: the framework's (Python, shapes, memory), finding its workspace and tiling, and the
launch. One thread does all three at level 0. At level 1 the launch moves to a second thread, at level 2 the workspace
as well; a stream of operators then costs as much as the slower thread. The proportions come from a public timeline,
whose own operators follow one another in 22.0 us (median) where the parts say 22.1.

A graph is captured per block of the program; replaying it costs the host one dispatch, whatever is in it.
"""

import json
from dataclasses import dataclass, replace
from importlib import resources

from engine.core.errors import ScenarioError
from engine.devices.spec import DeviceSpec
from engine.workloads.scenario import LengthDistribution, OutOfMemoryPolicy, Scenario
from engine.workloads.scenario_keys import Table

GRAPH_MODE, ASYNC_DISPATCH = "host.graph_mode", "host.async_dispatch"
USUAL_LEVEL = 1
"""What a device's host time per operator stands for."""
DEEPEST_LEVEL = 2


@dataclass(frozen=True, slots=True)
class TaskQueueParts:
    """Host time of one operator by part, ns; their proportions are what counts.

    Attributes:
        framework_ns: Python, the framework and the entry in the queue.
        workspace_ns: Size of the workspace and tiling.
        launch_ns: Handing the kernel to the device.
    """

    framework_ns: float
    workspace_ns: float
    launch_ns: float

    def operator_ns(self, level: int) -> float:
        """Returns what a stream of operators costs per operator at a level of the task queue (0, 1, 2), ns."""
        if level == 0:
            return self.framework_ns + self.workspace_ns + self.launch_ns
        if level == USUAL_LEVEL:
            return max(self.framework_ns + self.workspace_ns, self.launch_ns)
        return max(self.framework_ns, self.workspace_ns + self.launch_ns)

    def ratio(self, level: int) -> float:
        """Returns host time per operator at a level over that at level 1."""
        return self.operator_ns(level) / self.operator_ns(USUAL_LEVEL)


def load_task_queue_parts() -> TaskQueueParts:
    """Returns the shipped parts with the provenance their file gives."""
    text = resources.files("engine.devices").joinpath("data", "task_queue.json").read_text(encoding="utf-8")
    return TaskQueueParts(**{name: float(entry["value"]) for name, entry in json.loads(text)["parts"].items()})


def queue_level(scenario: Scenario) -> int:
    """Returns the level of the task queue a scenario runs at. Raises ScenarioError."""
    if not scenario.enabled(ASYNC_DISPATCH):
        return USUAL_LEVEL
    if scenario.device.vendor == "NVIDIA":
        raise ScenarioError(f"{ASYNC_DISPATCH}: the task queue is torch_npu's; device {scenario.device.id} has none")
    table = Table(f"optimizations.{ASYNC_DISPATCH}", scenario.optimizations[ASYNC_DISPATCH])
    level = table.integer("level", DEEPEST_LEVEL, minimum=0)
    table.finish()
    if level > DEEPEST_LEVEL:
        raise table.wrong("level", f"is {level}; TASK_QUEUE_ENABLE knows 0, 1 and 2")
    return level


def dispatching_device(scenario: Scenario) -> DeviceSpec:
    """Returns the scenario's device with its host time per operator at the level chosen. Raises ScenarioError."""
    level, device = queue_level(scenario), scenario.device
    if level == USUAL_LEVEL:
        return device
    usual = device.constants["host_dispatch_ns"]
    source = f"{usual.source}; task queue at level {level} by the parts in task_queue.json"
    changed = replace(usual, value=usual.value * load_task_queue_parts().ratio(level), source=source)
    return replace(device, constants={**device.constants, "host_dispatch_ns": changed})


def replays_graphs(scenario: Scenario) -> bool:
    """Returns whether blocks are captured graphs. Raises ScenarioError where they cannot be."""
    if not scenario.enabled(GRAPH_MODE):
        return False
    Table(f"optimizations.{GRAPH_MODE}", scenario.optimizations[GRAPH_MODE]).finish()
    if scenario.batch.lengths.distribution is not LengthDistribution.FIXED:
        message = "a captured graph has static shapes, but sequence lengths vary; give batch.sequence_length one number"
        raise ScenarioError(f"{GRAPH_MODE}: {message}")
    if scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT:
        message = 'a captured graph cannot split its micro-batch; use memory.on_out_of_memory = "abort"'
        raise ScenarioError(f"{GRAPH_MODE}: {message}")
    return True
