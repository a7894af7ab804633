"""A service on the simulated runtime: requests in, iterations of an engine, times out."""
