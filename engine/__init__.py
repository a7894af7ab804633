"""CannScope's engine: traces, analyses and reports. Never imports Qt."""
