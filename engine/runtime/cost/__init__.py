"""How long operators take: ``operator_durations(device, operators)`` and ``host_durations(device, operators)``."""

from engine.runtime.cost.durations import host_durations, operator_durations
from engine.runtime.cost.operators import NO_WINDOW, Law, OperatorTable, concatenate, grouped_matmul, matmul
from engine.runtime.cost.parameters import CostParameters, FamilyParameters, load_parameters

__all__ = [
    "NO_WINDOW",
    "CostParameters",
    "FamilyParameters",
    "Law",
    "OperatorTable",
    "concatenate",
    "grouped_matmul",
    "host_durations",
    "load_parameters",
    "matmul",
    "operator_durations",
]
