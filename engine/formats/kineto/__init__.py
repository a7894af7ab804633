"""PyTorch Kineto traces, 2021 schema to today."""
