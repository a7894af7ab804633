"""Gradients are exchanged in fewer bits."""

from collections.abc import Sequence

from engine.core.number_format import format_bytes
from engine.devices.spec import DType
from engine.optimizations.answers import already_listed, applies, switched_on, unknown
from engine.optimizations.communication.compression import Recipe, check_compression, compressed
from engine.optimizations.communication.payload import HALF_BYTES
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
from engine.workloads.communication_settings import CommunicationSettings
from engine.workloads.gradient_exchange import BYTE_BITS, ROW, payload_bytes
from engine.workloads.parameters import MAIN_GRADIENT_BYTES
from engine.workloads.scenario import Scenario

ID = "communication.quantized_gradients"
WIDTHS = (16, 8)


def _settings(parameters: Parameters) -> CommunicationSettings:
    return CommunicationSettings(gradient_bits=int(parameters["bits"]))


def _recipe(settings: CommunicationSettings) -> Recipe:
    """Returns the casts a simulated job makes (``workloads.gradient_exchange``)."""
    narrow = settings.gradient_bits == BYTE_BITS

    def before(count: int) -> Sequence[OperatorTable]:
        if not narrow:
            return (catalogue.cast(count, DType.FP32, DType.BF16, cold=True),)
        rows = -(-count // ROW)
        written = payload_bytes(settings, count, 1) / (rows * ROW)
        return (
            catalogue.vector_operator("dynamic_quant", rows, ROW, DType.FP32, MAIN_GRADIENT_BYTES, written, cold=True),
        )

    def after(count: int, members: int, shard: bool) -> Sequence[OperatorTable]:
        source = DType.INT8 if narrow else DType.BF16
        return (catalogue.cast(-(-count // (members if shard else 1)), source, DType.FP32),)

    return Recipe(
        names=("DynamicQuant" if narrow else "Cast", "Cast"),
        before=before,
        after=after,
        payload_bytes=lambda count, members: payload_bytes(settings, count, members),
    )


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = _wrong_width(parameters) or already_listed(scenario, ID) or no_replicas(scenario)
    size = gradient_bytes(scenario)
    narrow = payload_bytes(_settings(parameters), size // MAIN_GRADIENT_BYTES, 1)
    return settled or applies(
        f"{format_bytes(size)} of fp32 gradients per device become {format_bytes(narrow)} on the way between "
        f"{exchanging_replicas(scenario)} ranks"
    )


def _wrong_width(parameters: Parameters) -> Applicability | None:
    bits = parameters["bits"]
    return None if bits in WIDTHS else unknown(f"gradients travel in 16 or 8 bits, not in {bits}")


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    least = HALF_BYTES if int(parameters["bits"]) > BYTE_BITS else 1
    return _wrong_width(parameters) or check_compression(plan, least_bytes=least)


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    return compressed(plan, _recipe(_settings(parameters)), bound)


QUANTIZED_GRADIENTS = Optimization(
    id=ID,
    title="Gradients exchanged in fewer bits",
    group=Group.COMMUNICATION,
    summary="Gradients are cast to 16 bits, or scaled to 8, before replicas reduce them, and back behind it.",
    parameters=(
        Parameter(
            "bits",
            "Bits of a gradient on the wire (16 or 8)",
            16,
            minimum=8,
            maximum=16,
            provenance="MindSpeed's --quant-grads sends fp16; 8 bits are a simulator feature",
        ),
    ),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--quant-grads",
            "MindSpeed docs/zh/features/low-precision-optimizer.md",
            "fp32 to fp16 gradients; needs --no-gradient-accumulation-fusion, excludes --swap-optimizer",
        ),
        Switch(
            "PyTorch DDP",
            "PyTorch 2.x with torch_npu, A2 and A3, not 950DT",
            "model.register_comm_hook(state, default_hooks.fp16_compress_hook)",
            "Ascend/pytorch docs/zh/api/native_api/pytorch_2-12-0/DDP-Communication-Hooks.md",
            "fp32 gradients only",
        ),
        Switch(
            "PyTorch DDP",
            "",
            "model.register_comm_hook(state, default_hooks.fp16_compress_hook)",
            "PyTorch, DDP communication hooks",
            "on GPUs; fp32 gradients only",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    conflicts=(
        Conflict(
            "fusion.gradient_accumulation",
            "--quant-grads needs --no-gradient-accumulation-fusion, which is what that fusion is",
        ),
    ),
    risk="changes training: rounded gradients; the effect on accuracy is not quantifiable without weights",
    undo="remove the flag or hook",
    verify="loss over some thousand steps beside step time; exposed communication after 5 warm steps",
    provenance="casts: runtime/cost at the device's rates; transfers: runtime/collectives",
)
