"""A scenario: everything that decides a simulated run. Same scenario and seed, same bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.devices.spec import DeviceSpec
from engine.workloads.models.spec import ModelSpec
from engine.workloads.serving.settings import ServingSettings


class WorkloadKind(StrEnum):
    """What a scenario runs."""

    TRAINING = "training"
    SERVING = "serving"


class Schedule(StrEnum):
    """In which order a pipeline stage takes its micro-batches."""

    GPIPE = "gpipe"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    INTERLEAVED = "interleaved"


class TensorMode(StrEnum):
    """Which dimension of a block's first matrix tensor parallelism cuts; the second matrix is cut the other way."""

    ROW_SPLIT = "row_split"
    COLUMN_SPLIT = "column_split"


class Recompute(StrEnum):
    """Which activations the backward pass computes again instead of keeping them."""

    NONE = "none"
    SELECTIVE = "selective"
    """The attention core only (scores, softmax, dropout): large to keep, cheap to compute."""
    ACTIVATION = "activation"
    """The activation function of the feed-forward block only."""
    FULL = "full"
    """Everything but the inputs of the layers."""


class OutOfMemoryPolicy(StrEnum):
    """What the training loop does when an allocation fails."""

    ABORT = "abort"
    SPLIT = "split"
    """Catch it, empty the cache, split the micro-batch in two and try again."""


class LengthDistribution(StrEnum):
    """How sequence lengths vary."""

    FIXED = "fixed"
    LOGNORMAL = "lognormal"
    UNIFORM = "uniform"


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How the job is spread over devices. ``data`` × ``tensor`` × ``pipeline`` × ``context`` is the world size.

    Attributes:
        data: Replicas.
        tensor: Devices that share every layer.
        tensor_mode: See TensorMode.
        pipeline: Stages.
        virtual_pipeline: Model chunks per stage (interleaved schedule).
        context: Devices that share every sequence.
        expert: Devices that share the experts; taken from the replicas.
        schedule: Order of micro-batches.
        sequence_parallel: Norms and dropouts are split along the sequence over the tensor group.
        distributed_optimizer: Optimizer state is split over the replicas.
    """

    data: int = 1
    tensor: int = 1
    tensor_mode: TensorMode = TensorMode.ROW_SPLIT
    pipeline: int = 1
    virtual_pipeline: int = 1
    context: int = 1
    expert: int = 1
    schedule: Schedule = Schedule.ONE_FORWARD_ONE_BACKWARD
    sequence_parallel: bool = True
    distributed_optimizer: bool = True

    @property
    def world_size(self) -> int:
        """Devices the job needs."""
        return self.data * self.tensor * self.pipeline * self.context


@dataclass(frozen=True, slots=True)
class SequenceLengths:
    """How long the sequences of a batch are.

    Attributes:
        distribution: FIXED has ``mean`` as the length of all.
        mean: Tokens.
        sigma: Standard deviation of the logarithm (LOGNORMAL).
        minimum: Shortest (UNIFORM, LOGNORMAL after clipping).
        maximum: Longest; lengths are clipped to it.
    """

    distribution: LengthDistribution
    mean: float
    sigma: float
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step is fed with.

    Attributes:
        micro: Sequences per micro-batch and replica.
        global_sequences: Sequences per step over all replicas.
        lengths: Of the sequences.
    """

    micro: int
    global_sequences: int
    lengths: SequenceLengths


@dataclass(frozen=True, slots=True)
class LongLived:
    """Tensors born in the middle of steps that outlive them: statistics kept, caches per new shape, moving averages.

    Attributes:
        per_step: How many are born per step on average, on every rank.
        lifetime_steps: Mean life in steps, exponentially distributed; 0 for ever (a leak).
        minimum_bytes: Smallest.
        maximum_bytes: Largest; sizes are uniform in between.
    """

    per_step: float = 0.0
    lifetime_steps: float = 300.0
    minimum_bytes: int = 1 << 18
    maximum_bytes: int = 3 << 20


@dataclass(frozen=True, slots=True)
class Tiering:
    """Which tensors wait in the host's memory (DDR) while a step does not need them: a simulator's term.

    Attributes:
        cold: Classes of tensors that leave HBM.
        prefetch_distance: Blocks of the program ahead of its use at which a cold tensor is fetched.
    """

    cold: tuple[str, ...] = ()
    prefetch_distance: int = 2


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Device memory and how it is managed.

    Attributes:
        allocator: Policy name.
        limit_bytes: What the allocator may reserve; None for what the device has.
        on_out_of_memory: What the training loop does.
        recompute: Which activations are computed twice.
        rules: Path of a JSON file with the rules of automatic memory management, None for its defaults.
        long_lived: Tensors that outlive their step.
        tiering: What leaves HBM for DDR; None for nothing.
    """

    allocator: str = "caching"
    limit_bytes: int | None = None
    on_out_of_memory: OutOfMemoryPolicy = OutOfMemoryPolicy.ABORT
    recompute: Recompute = Recompute.NONE
    rules: str | None = None
    long_lived: LongLived = LongLived()
    tiering: Tiering | None = None

    def is_cold(self, tensors: str) -> bool:
        """Returns whether a class of tensors leaves HBM."""
        return self.tiering is not None and tensors in self.tiering.cold


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How long it runs and what is kept.

    Attributes:
        steps: Steps.
        profile_steps: 0-based steps whose kernel rows are kept.
    """

    steps: int = 3
    profile_steps: tuple[int, ...] = (2,)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run that can be repeated.

    Attributes:
        name: For people.
        kind: Training or serving.
        seed: Of everything drawn.
        model: What is trained.
        device: On what.
        device_count: Devices in all.
        devices_per_node: Devices of one server.
        parallel: Layout.
        batch: Input.
        memory: Device memory.
        run: Length and what is kept.
        serving: How a service is run (kind SERVING).
        optimizations: Id → parameters of what is switched on.
    """

    name: str
    kind: WorkloadKind
    seed: int
    model: ModelSpec
    device: DeviceSpec
    device_count: int
    devices_per_node: int
    parallel: Parallelism
    batch: Batch
    memory: MemorySettings
    run: RunSettings
    serving: ServingSettings = field(default_factory=ServingSettings)
    optimizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def micro_batch_count(self) -> int:
        """Micro-batches one replica runs per step."""
        return self.batch.global_sequences // (self.batch.micro * self.parallel.data)

    def enabled(self, optimization: str) -> bool:
        """Returns whether an optimization is switched on."""
        return optimization in self.optimizations
