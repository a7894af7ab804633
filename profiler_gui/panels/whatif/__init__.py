"""What optimizations make of run A: before and after, by time, memory, operator and timeline; what was tried."""
