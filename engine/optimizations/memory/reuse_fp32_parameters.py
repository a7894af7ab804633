"""One copy of the parameters: BF16 weights inside their FP32 master copy."""

from engine.devices.spec import DType
from engine.optimizations.answers import already_listed, applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import Applicability, Group, Optimization, Parameters, Switch
from engine.optimizations.memory.twin_only import twin_check
from engine.workloads.scenario import Scenario

ID = "memory.reuse_fp32_parameters"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    listed = already_listed(scenario, ID)
    if listed is not None:
        return listed
    if scenario.model.dtype is not DType.BF16:
        return no_effect("only BF16 weights are the upper half of their FP32 copy")
    return applies("BF16 weights and their FP32 copies are both kept")


REUSE_FP32_PARAMETERS = Optimization(
    id=ID,
    title="One copy of the parameters",
    group=Group.MEMORY,
    summary="The BF16 weights live in the memory of their FP32 master copy, which saves 2 bytes per parameter.",
    parameters=(),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--reuse-fp32-param",
            "MindSpeed docs/zh/features/reuse-fp32-param.md",
            "BF16 only; not with --swap-optimizer; in the legacy path not with --overlap-param-gather",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check("weights were allocated before the capture began and are not in its memory log"),
    risk="none for accuracy; less than 1 % of the step by the vendor",
    undo="remove the option",
    verify="allocated memory after the first step",
    provenance="2 bytes per parameter: MindSpeed docs/zh/features/reuse-fp32-param.md",
)
