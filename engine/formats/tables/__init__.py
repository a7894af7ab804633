"""Exact and fast reading of csv tables."""
