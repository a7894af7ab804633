"""A recorded run on the simulated runtime: memory logs and allocator snapshots."""
