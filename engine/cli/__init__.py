"""The engine without a window: one file per command."""
