"""Any Chrome trace: reading and writing."""
