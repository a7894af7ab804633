"""What to change, ranked by what a rerun gives, each with its evidence and its switch."""
