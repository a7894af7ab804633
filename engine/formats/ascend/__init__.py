"""Captures of Ascend profilers as text: directories of csv and JSON files."""
