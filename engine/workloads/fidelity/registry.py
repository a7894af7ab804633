"""All tables there are."""

from engine.workloads.fidelity.ablation import ABLATION_TABLES
from engine.workloads.fidelity.collectives import COLLECTIVE_TABLES, SLOW_COLLECTIVE_TABLES
from engine.workloads.fidelity.operators import OPERATOR_TABLES, SLOW_OPERATOR_TABLES
from engine.workloads.fidelity.serving import SERVING_TABLES
from engine.workloads.fidelity.tables import FidelityTable
from engine.workloads.fidelity.training import TRAINING_TABLES

FIDELITY_TABLES: tuple[FidelityTable, ...] = (
    *OPERATOR_TABLES,
    *COLLECTIVE_TABLES,
    *TRAINING_TABLES,
    *ABLATION_TABLES,
    *SERVING_TABLES,
    *SLOW_OPERATOR_TABLES,
    *SLOW_COLLECTIVE_TABLES,
)
"""Every table of the runtime's times and memory, those that take minutes last."""
