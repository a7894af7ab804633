"""The first screen: one sentence, the steps, the memory, and what to look at first."""
