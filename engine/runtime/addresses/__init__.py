"""Where blocks lay: address maps of what an allocator did, and why an allocation found no hole."""
