"""A recorded run on the simulated runtime: its timeline as tasks, its memory log, allocator snapshots."""
