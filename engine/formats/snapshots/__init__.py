"""Snapshots of PyTorch's and torch_npu's caching allocators."""
