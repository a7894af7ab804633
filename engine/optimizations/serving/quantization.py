"""Quantized weights: fewer bytes to read per token, int8 products, more room for keys and values."""

from engine.core.number_format import format_bytes
from engine.devices.spec import DType
from engine.optimizations.answers import already_on, applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.serving.service import check_served_capture, service_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings import WeightFormat
from engine.workloads.serving.settings_file import optimized
from engine.workloads.serving.simulate import served_shard

ID = "serving.quantization"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    now = service_of(scenario)
    then = optimized(now, {ID: parameters})
    if then == now:
        return already_on(f"weights are {now.weights.value}")
    if then.weights is WeightFormat.MXFP4 and not scenario.model.experts:
        return no_effect(f"mxfp4 is for experts; {scenario.model.id} has none")
    if then.weights is WeightFormat.W8A8 and not scenario.device.supports(DType.INT8):
        return no_effect(f"device {scenario.device.id} has no known rate of int8 products")
    before, after = (served_shard(scenario, settings).weight_bytes for settings in (now, then))
    return applies(f"a device holds {format_bytes(after)} of weights instead of {format_bytes(before)}")


QUANTIZATION = Optimization(
    id=ID,
    title="Quantized weights",
    group=Group.SERVING,
    summary=(
        "Weights are stored in 8 or 4 bits: decoding reads fewer bytes, W8A8 multiplies int8, and more keys and values "
        "fit. What it does to answers cannot be known without the weights."
    ),
    parameters=(
        Parameter(
            "weights",
            "Format: w8a8 multiplies int8; w4a16 and mxfp4 (experts only) store 4 bits and multiply bf16",
            WeightFormat.W8A8.value,
            choices=tuple(item.value for item in WeightFormat),
            provenance="W8A8 is ModelSlim's usual format for Ascend",
        ),
    ),
    switches=(
        Switch(
            "vllm-ascend",
            "",
            "--quantization ascend",
            "vllm-ascend docs/source/user_guide/ (quantization)",
            "the model has to be converted by ModelSlim first; check its accuracy",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=check_served_capture,
    risk="accuracy: not quantifiable without the weights; with them: cannscope quantize",
    undo="serve the unconverted model without --quantization",
    verify="time per token, memory left for keys and values, and the accuracy of the task",
)
