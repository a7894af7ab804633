"""Fitting a device to a capture: its kernels as operators, and constants that reproduce their times."""
