"""The page of a service: its requests as rows, its load over time, its latencies, and who was late and why."""
