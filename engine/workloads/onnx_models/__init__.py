"""ONNX models: read, described as operators, fused for a target, priced."""
