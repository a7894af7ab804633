"""The simulated CANN runtime: allocators, scheduling, collectives, recording."""
