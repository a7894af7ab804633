"""What to change, the largest loss first, each with its evidence and its switch."""
