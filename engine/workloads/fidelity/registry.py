"""All tables there are."""

from engine.workloads.fidelity.collectives import COLLECTIVE_TABLES, SLOW_COLLECTIVE_TABLES
from engine.workloads.fidelity.operators import OPERATOR_TABLES, SLOW_OPERATOR_TABLES
from engine.workloads.fidelity.tables import FidelityTable
from engine.workloads.fidelity.training import TRAINING_TABLES

FIDELITY_TABLES: tuple[FidelityTable, ...] = (*OPERATOR_TABLES, *COLLECTIVE_TABLES, *TRAINING_TABLES)
"""Evaluated by default."""
NAMED_TABLES: tuple[FidelityTable, ...] = (*SLOW_OPERATOR_TABLES, *SLOW_COLLECTIVE_TABLES)
"""Evaluated only when a user names them: they take minutes."""
