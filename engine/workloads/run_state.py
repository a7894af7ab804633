"""What a run keeps between steps: prices, programs, and the memory of every class of ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import ScenarioError
from engine.runtime.cost.parameters import load_parameters
from engine.workloads.acting import acting_scenario
from engine.workloads.blocks import Block
from engine.workloads.communication_settings import job_network
from engine.workloads.driver_costs import load_driver_costs
from engine.workloads.host_dispatch import dispatching_device, replays_graphs
from engine.workloads.items import Item
from engine.workloads.job_allocator import new_job_allocator
from engine.workloads.job_memory import JobMemory, MemoryRecord
from engine.workloads.layer_tiering import check_cold_layers, with_cold_layers
from engine.workloads.lowering import fusions_of
from engine.workloads.memory_plan import MemoryPlan, add_blocks, kept_by, memory_plan
from engine.workloads.offloading import check_offload, offload_distance, offloaded_items
from engine.workloads.optimization_ids import SIMULATED_IN_TRAINING
from engine.workloads.persistent_memory import PersistentMemory, cold_bytes, persistent_memory
from engine.workloads.program import StageProgram, lowering_of, stage_program, step_blocks, transfer_bytes
from engine.workloads.scenario import LengthDistribution, OutOfMemoryPolicy, Scenario, WorkloadKind
from engine.workloads.sequence_lengths import RunLengths, draw_lengths
from engine.workloads.step_graph import RankClass
from engine.workloads.templates import Machine, Template, priced
from engine.workloads.tiering import check_tiering, tiered_items
from engine.workloads.upkeep import Upkeep, upkeep_of


@dataclass(eq=False)
class RunState:
    """A run between steps.

    Attributes:
        asked: The scenario as it was given.
        scenario: What is run: ``asked`` with what its optimizations say about its own fields.
        machine: What prices depend on.
        lengths: Of all sequences.
        transfer_bytes: int64, shape (lengths,): an activation between stages.
        programs: By stage.
        classes: Ranks that do the same at the same times.
        templates: Priced blocks by sequences of a micro-batch and name.
        memories: One per class.
        persistent: Sizes of what lives as long as the job, one array per class.
        records: What memory did, per step and class.
        upkeep: What the training loop does about its memory every so many steps.
    """

    asked: Scenario
    scenario: Scenario
    machine: Machine
    lengths: RunLengths
    transfer_bytes: Int64Array
    programs: tuple[StageProgram, ...]
    classes: tuple[RankClass, ...]
    templates: dict[tuple[int, str], Template] = field(default_factory=dict)
    memories: list[JobMemory] = field(default_factory=list)
    persistent: list[Int64Array] = field(default_factory=list)
    records: list[list[MemoryRecord]] = field(default_factory=list)
    upkeep: Upkeep = field(default_factory=Upkeep)

    def price(self, sequences: int) -> None:
        """Prices all blocks for micro-batches of so many sequences, and lets every class know their tensors."""
        if any(known == sequences for known, _ in self.templates):
            return
        low = lowering_of(self.scenario, self.lengths.known, sequences)
        blocks = step_blocks(self.scenario, low)
        for name, block in blocks.items():
            count = 1 if name.startswith(("zero", "optimizer")) else len(low.lengths)
            self.templates[sequences, name] = priced(block, self.machine, count)
        for memory in self.memories:
            add_blocks(memory.plan, sequences, blocks)


def check_simulated(scenario: Scenario) -> None:
    """Raises ScenarioError for what a simulated training job cannot do."""
    if scenario.kind is not WorkloadKind.TRAINING:
        raise ScenarioError('kind = "serving" has no training steps; use kind = "training"')
    for identifier in scenario.optimizations:
        if identifier not in SIMULATED_IN_TRAINING:
            known = ", ".join(sorted(SIMULATED_IN_TRAINING))
            raise ScenarioError(f"optimizations: {identifier} does not act on a simulated training job; known: {known}")
    dtype = acting_scenario(scenario).model.dtype
    if not scenario.device.supports(dtype):
        name = dtype.name.lower()
        raise ScenarioError(f'model.dtype = "{name}" is not multiplied by device {scenario.device.id}; use "fp16"')
    varies = scenario.batch.lengths.distribution is not LengthDistribution.FIXED
    if scenario.parallel.expert > 1:
        if varies:
            raise ScenarioError("parallel.expert > 1 needs one batch.sequence_length for all: replicas exchange tokens")
        if scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT:
            message = 'parallel.expert > 1 needs memory.on_out_of_memory = "abort": replicas exchange tokens'
            raise ScenarioError(message)


def _tensor_transfer_ratio(scenario: Scenario) -> float:
    fused = fusions_of(scenario).matmul_communication
    return load_parameters().shared_value("fused_transfer_ratio") if fused else 1.0


def _program(scenario: Scenario, stage: int) -> StageProgram:
    """Returns the program of a stage, with the copies of its cold tensors that live as long as the job."""
    program, tiering = stage_program(scenario, stage), scenario.memory.tiering
    if tiering is None:
        return program
    held = persistent_memory(scenario, program.weights)
    check_tiering(scenario, cold_bytes(scenario, held))
    items = with_cold_layers(program.items, held, scenario)
    if scenario.memory.is_cold("optimizer_state"):
        pieces = held.sizes[held.state.start :]
        items = tiered_items(items, held.state.start, pieces, tiering.prefetch_distance)
    return replace(program, items=items)


def prepared_run(scenario: Scenario) -> RunState:
    """Returns the state of a run before its first step. Raises ScenarioError."""
    check_simulated(scenario)
    asked, scenario = scenario, acting_scenario(scenario)
    varies = scenario.batch.lengths.distribution is not LengthDistribution.FIXED
    replicas = scenario.parallel.data if varies or scenario.memory.long_lived.per_step > 0 else 1
    lengths = draw_lengths(scenario, replicas)
    network = job_network(scenario)
    programs = tuple(_program(scenario, stage) for stage in range(scenario.parallel.pipeline))
    held = [persistent_memory(scenario, program.weights) for program in programs]
    check_cold_layers(scenario, [(program.items, own) for program, own in zip(programs, held, strict=True)])
    low = lowering_of(scenario, lengths.known)
    state = RunState(
        asked=asked,
        scenario=scenario,
        machine=Machine(
            dispatching_device(scenario),
            network,
            scenario.parallel,
            _tensor_transfer_ratio(scenario),
            replays_graphs(scenario),
        ),
        lengths=lengths,
        transfer_bytes=transfer_bytes(low),
        programs=programs,
        classes=tuple(RankClass(stage, replica) for stage in range(len(programs)) for replica in range(replicas)),
        upkeep=upkeep_of(scenario),
    )
    _add_memories(state, held, step_blocks(scenario, low.with_lengths(lengths.known[:1])))
    state.price(scenario.batch.micro)
    _offload(state)
    return state


def _add_memories(state: RunState, held: Sequence[PersistentMemory], blocks: Mapping[str, Block]) -> None:
    """Gives every class of ranks its memory, with nothing in it yet."""
    scenario = state.scenario
    costs = load_driver_costs(scenario.device)
    for number, ranks in enumerate(state.classes):
        program, sizes = state.programs[ranks.stage], held[ranks.stage].sizes
        plan = memory_plan(
            blocks,
            state.transfer_bytes,
            program.slot_count,
            scenario.micro_batch_count,
            len(sizes),
            int(state.machine.replays_graphs),
        )
        generator = np.random.default_rng([scenario.seed, 2, number])
        allocator = new_job_allocator(scenario)
        state.persistent.append(sizes)
        state.memories.append(JobMemory(allocator, plan, costs, scenario.memory.long_lived, generator))


def _offload(state: RunState) -> None:
    """Lets the activations of every stage wait in DDR where the scenario asks for it."""
    scenario = state.scenario
    distance = offload_distance(scenario)
    if not distance:
        return
    plans = {ranks.stage: memory.plan for ranks, memory in zip(state.classes, state.memories, strict=True)}
    programs = []
    for program in state.programs:
        plan = plans[program.stage]

        def kept_bytes(item: Item, plan: MemoryPlan = plan) -> int:
            return int(kept_by(plan, scenario.batch.micro, item.block, 0)[1].sum())

        programs.append(replace(program, items=offloaded_items(program.items, kept_bytes, distance)))
    held = [cold_bytes(scenario, persistent_memory(scenario, program.weights)) for program in programs]
    check_offload(scenario, [program.items for program in programs], held)
    state.programs = tuple(programs)


def restarted(state: RunState) -> bool:
    """Gives every class of ranks a fresh allocator and loads what lives as long as the job; returns whether it fits."""
    fits = [
        memory.restart(new_job_allocator(state.scenario), sizes)
        for memory, sizes in zip(state.memories, state.persistent, strict=True)
    ]
    return all(fits)
