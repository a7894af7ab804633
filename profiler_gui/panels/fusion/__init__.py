"""The Fusion page: sequences of kernels that one operator could replace, and where they stand."""
