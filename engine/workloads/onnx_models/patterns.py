"""Chains of ONNX operators the target runs as one kernel."""

from dataclasses import dataclass

ELEMENTWISE = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Relu",
        "LeakyRelu",
        "Clip",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Sqrt",
        "Neg",
        "Abs",
        "Pow",
        "Cast",
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a chain.

    Attributes:
        operators: Types it may have.
        optional: Whether the chain may go on without it.
        repeats: How often it may follow itself.
    """

    operators: frozenset[str]
    optional: bool = False
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """A fusion pass.

    Attributes:
        name: What the fused operator is called.
        kernel: The kernel of the target it stands for, or the pass of the target's graph compiler.
        steps: Operators in order; each reads a result of one before it.
        least: Operators a match must have.
    """

    name: str
    kernel: str
    steps: tuple[Step, ...]
    least: int = 2


def _one(*operators: str) -> Step:
    return Step(frozenset(operators))


def _maybe(*operators: str, repeats: int = 1) -> Step:
    return Step(frozenset(operators), optional=True, repeats=repeats)


PATTERNS = (
    Pattern(
        "FusedAttention",
        "FlashAttention (attention super-operator)",
        (_one("MatMul"), _maybe("Mul", "Div"), _maybe("Add", "Where"), _one("Softmax"), _maybe("Cast"), _one("MatMul")),
        3,
    ),
    Pattern(
        "FusedLayerNorm",
        "LayerNorm",
        (
            _one("ReduceMean"),
            _one("Sub"),
            _maybe("Cast"),
            _one("Pow", "Mul"),
            _one("ReduceMean"),
            _one("Add"),
            _one("Sqrt"),
            _one("Div"),
            _maybe("Mul"),
            _maybe("Add"),
        ),
        7,
    ),
    Pattern(
        "FusedRmsNorm",
        "RmsNorm",
        (
            _one("Pow", "Mul"),
            _one("ReduceMean"),
            _one("Add"),
            _one("Sqrt"),
            _maybe("Reciprocal"),
            _one("Div", "Mul"),
            _maybe("Cast"),
            _maybe("Mul"),
        ),
        5,
    ),
    Pattern("FusedGelu", "Gelu", (_one("Div", "Mul"), _one("Erf"), _one("Add"), _one("Mul"), _maybe("Mul")), 4),
    Pattern(
        "FusedGeluTanh",
        "Gelu",
        (_one("Pow"), _one("Mul"), _one("Add"), _one("Mul"), _one("Tanh"), _one("Add"), _one("Mul"), _maybe("Mul")),
        7,
    ),
    Pattern("FusedSwiGlu", "SwiGlu", (_one("Sigmoid"), _one("Mul"), _one("Mul")), 3),
    Pattern(
        "FusedConv",
        "Conv2D with folded normalization and activation",
        (
            _one("Conv"),
            _maybe("BatchNormalization"),
            _maybe("Add"),
            _maybe("Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSwish"),
        ),
    ),
    Pattern(
        "FusedMatMul",
        "MatMulV2 with bias and activation",
        (_one("MatMul", "Gemm"), _maybe("Add"), _maybe("Relu", "Gelu", "Clip", "Sigmoid", "Tanh")),
    ),
    Pattern(
        "FusedAddNorm",
        "AddLayerNorm",
        (_one("Add"), _one("LayerNormalization", "RMSNormalization", "FusedLayerNorm", "FusedRmsNorm")),
    ),
    Pattern(
        "FusedElementwise", "UB fusion of element-wise operators", (Step(ELEMENTWISE), Step(ELEMENTWISE, repeats=16))
    ),
)
"""In the order they are tried: what holds others comes first."""
