"""The page of benchmarks: what a job's or service's numbers did over the weeks."""
