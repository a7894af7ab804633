"""A service's requests and iterations: latencies, batches, memory of keys and values, who was late and why."""
