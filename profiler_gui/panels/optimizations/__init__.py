"""Optimizations as toggles: what each does here, how it is switched on for real, and what it conflicts with."""
