"""Benchmarks of scenarios: measured, compared with a baseline, kept over time."""
