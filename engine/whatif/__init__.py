"""A job as it is and as it would be: baseline and candidate of a scenario or a capture."""
