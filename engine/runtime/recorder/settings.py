"""What the recording profiler is told, beside the run itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.graph.task_graph import TaskGraph
from engine.runtime.recorder.group_ids import HcclGroup
from engine.trace.trace import TraceMetadata

SOFTWARE = "cannscope simulated"
EPOCH_NS = 1_767_225_600 * 10**9
"""1 January 2026: simulated runs begin at one fixed moment, shifted by their seed, so that equal runs are equal."""
_SEED_SHIFT_NS = 10**9
LEVELS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """How a run is recorded.

    Attributes:
        level: 0 kernels without types and shapes, collectives as a whole; 1 adds CANN calls, types, shapes, what moved
            over which link and the statistics; 2 records what 1 does (there are no counters of AI CPUs to add).
        steps: Steps whose rows are kept; all where None.
        seed: Of the run; shifts the epoch by whole seconds.
        host: Name of the simulated machine.
        devices_per_node: Device numbers count up to it.
        device: What the profiler calls the device's model (``"Ascend910B2"``).
        world_size: Ranks of the job; those of the graph where None.
        device_memory_bytes: Capacity, None where unknown.
        parallel_sizes: ``"tensor_model_parallel_size"`` → 4 …; the vendor's tools want the product of those of tensor,
            pipeline and data to be the world size.
        environment: Variables that describe the run, e.g. ``PYTORCH_NPU_ALLOC_CONF``.
        link_of_group: Group id → link its members share: ``"HCCS"``, ``"RDMA"``, ``"SIO"``, ``"PCIE"``.
        details: Kept in the metadata as they are (scenario, versions, hashes).
    """

    level: int = 1
    steps: tuple[int, ...] | None = None
    seed: int = 0
    host: str = "simulated"
    devices_per_node: int = 8
    device: str = ""
    world_size: int | None = None
    device_memory_bytes: int | None = None
    parallel_sizes: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    link_of_group: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def epoch_ns(self) -> int:
        """Unix time of the start of the run."""
        return EPOCH_NS + self.seed * _SEED_SHIFT_NS

    def device_number(self, rank: int) -> int:
        """Returns the number of a rank's device inside its server."""
        return rank % self.devices_per_node


def metadata_of(
    graph: TaskGraph, rank: int, settings: RecorderSettings, groups: Mapping[str, HcclGroup]
) -> TraceMetadata:
    """Returns what the capture of a rank says of itself."""
    number = settings.device_number(rank)
    config = {
        "common_config": {"activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "profile_memory": True},
        "experimental_config": {"_profiler_level": f"Level{settings.level}", "_export_type": ["text"]},
    }
    simulation = {"origin": "simulated", "seed": settings.seed, "device": settings.device, **settings.details}
    return TraceMetadata(
        rank=rank,
        world_size=settings.world_size or int(graph.rank.max(initial=0)) + 1,
        device=f"NPU {number}",
        device_count=1,
        device_memory_bytes=settings.device_memory_bytes,
        host=settings.host,
        profiler_level=f"Level{settings.level}",
        software={"torch_npu_version": SOFTWARE, "cann_version": SOFTWARE},
        environment=dict(settings.environment),
        parallel_sizes=dict(settings.parallel_sizes),
        parallel_groups=tuple(replace(group, id=groups[group.id].id) for group in graph.groups if rank in group.ranks),
        extra={"cannscope": simulation, "config": config},
    )
