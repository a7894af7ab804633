"""Collectives: when they transfer, when they wait, and for whom."""
