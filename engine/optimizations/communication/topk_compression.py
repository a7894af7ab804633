"""Only the largest gradients are sent, with their positions; the rest waits for the next step."""

from collections.abc import Sequence

from engine.core.number_format import format_bytes
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.optimizations.answers import already_listed, applies, no_effect, switched_on
from engine.optimizations.communication.compression import Recipe, check_compression, compressed
from engine.optimizations.communication.scenario_exchanges import exchanging_replicas, gradient_bytes, no_replicas
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.runtime.cost import OperatorTable, catalogue
from engine.workloads.communication_settings import DEFAULT_RATIO, CommunicationSettings
from engine.workloads.gradient_exchange import POSITION_BYTES, ROW, SELECTION, payload_bytes, sent_count
from engine.workloads.parameters import MAIN_GRADIENT_BYTES
from engine.workloads.scenario import Scenario

ID = "communication.topk_compression"
_PAIR_BYTES = MAIN_GRADIENT_BYTES + POSITION_BYTES


def _settings(parameters: Parameters) -> CommunicationSettings:
    return CommunicationSettings(
        sent_ratio=float(parameters["ratio"]), error_feedback=bool(parameters["error_feedback"])
    )


def _recipe(settings: CommunicationSettings) -> Recipe:
    """Returns the passes a simulated job makes over its gradients (``workloads.gradient_exchange``)."""

    def before(count: int) -> Sequence[OperatorTable]:
        rows, sent = -(-count // ROW), sent_count(settings, count)
        written = _PAIR_BYTES * sent / (rows * ROW)
        chosen = catalogue.vector_operator(SELECTION, rows, ROW, DType.FP32, MAIN_GRADIENT_BYTES, written, cold=True)
        gathered = catalogue.copy(sent * 2, DType.FP32)
        if not settings.error_feedback:
            return (chosen, gathered)
        added = catalogue.elementwise(count, DType.FP32, inputs=2, cold=True)
        return (added, chosen, _indexed(sent, reads=False), gathered)

    def after(count: int, members: int, shard: bool) -> Sequence[OperatorTable]:
        own, sent = members if shard else 1, members * sent_count(settings, count)
        sums = (catalogue.fill(-(-count // own), DType.FP32), _indexed(-(-sent // own), reads=True))
        return (catalogue.elementwise(sent, DType.INT32, inputs=1), *sums) if own > 1 else sums

    return Recipe(
        names=("TopKV2", "ScatterAdd"),
        before=before,
        after=after,
        payload_bytes=lambda count, members: payload_bytes(settings, count, members),
        kind=CollectiveKind.ALL_GATHER,
    )


def _indexed(count: int, *, reads: bool) -> OperatorTable:
    read = POSITION_BYTES + (2 * MAIN_GRADIENT_BYTES if reads else 0)
    return catalogue.vector_operator("element_index", 1, count, DType.FP32, read, MAIN_GRADIENT_BYTES, cold=True)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = already_listed(scenario, ID) or no_replicas(scenario)
    if settled is not None:
        return settled
    replicas, size = exchanging_replicas(scenario), gradient_bytes(scenario)
    arriving = payload_bytes(_settings(parameters), size // MAIN_GRADIENT_BYTES, replicas)
    if arriving >= size:
        return no_effect(
            f"the largest gradients of {replicas} replicas with their positions are {format_bytes(arriving)}, no less "
            f"than the {format_bytes(size)} of all gradients"
        )
    return applies(
        f"{format_bytes(size)} of gradients per device become {format_bytes(arriving)} gathered from {replicas} ranks"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    return check_compression(plan, least_bytes=0)


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    return compressed(plan, _recipe(_settings(parameters)), bound)


_NO_SWITCH = "TopK has no product switch on Ascend; this is the nearest real one"
TOPK_COMPRESSION = Optimization(
    id=ID,
    title="TopK gradient compression",
    group=Group.COMMUNICATION,
    summary=(
        "Every replica sends only the largest gradients of every row of 4,096 with their positions; what is not sent "
        "is kept and added a step later (error feedback). A simulator feature."
    ),
    parameters=(
        Parameter(
            "ratio",
            "Share of gradients that is sent",
            DEFAULT_RATIO,
            minimum=1e-5,
            maximum=0.99,
            provenance="assumed: 0.1 to 1 % is usual in the literature on sparse gradients",
        ),
        Parameter("error_feedback", "Keep what is not sent for the next step", True),
    ),
    switches=(
        Switch(
            "PyTorch DDP",
            "PyTorch 2.x with torch_npu, A2 and A3, not 950DT",
            "model.register_comm_hook(state, default_hooks.fp16_compress_hook)",
            "Ascend/pytorch docs/zh/api/native_api/pytorch_2-12-0/DDP-Communication-Hooks.md",
            f"{_NO_SWITCH}: halves the bytes; fp32 gradients only",
        ),
        Switch(
            "PyTorch DDP",
            "PyTorch 2.x with torch_npu, A2 and A3, not 950DT",
            "model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)",
            "Ascend/pytorch docs/zh/api/native_api/pytorch_2-12-0/DDP-Communication-Hooks.md",
            f"{_NO_SWITCH}: low-rank approximation of the gradients, with error feedback",
        ),
        Switch(
            "PyTorch DDP",
            "",
            "model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)",
            "PyTorch, DDP communication hooks",
            "on GPUs; TopK has no product switch in PyTorch: low-rank approximation, with error feedback",
        ),
        Switch(
            "MindSpeed",
            "",
            "--quant-grads",
            "MindSpeed docs/zh/features/low-precision-optimizer.md",
            f"{_NO_SWITCH}: gradients in fp16; needs --no-gradient-accumulation-fusion, excludes --swap-optimizer",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    conflicts=(Conflict("communication.quantized_gradients", "both change what the replicas exchange"),),
    simulator_only=True,
    risk=(
        "changes training: small gradients arrive late or never; the effect on accuracy is not quantifiable without "
        "weights. Error feedback keeps one more fp32 copy of the gradients"
    ),
    undo="remove the hook or flag",
    verify="loss over some thousand steps beside step time; exposed communication after 5 warm steps",
    provenance="passes over the gradients: runtime/cost at the device's rates; transfers: runtime/collectives",
)
