"""Ids of everything that can be switched on in a scenario, and which of them a simulated training job acts on."""

_FUSIONS = (
    "attention", "rms_norm", "swiglu", "rope", "add_norm", "softmax_dropout", "cross_entropy", "optimizer",
    "gradient_accumulation", "matmul_all_reduce", "custom",
)  # fmt: skip
_MEMORY = (
    "expandable_segments", "gc_threshold", "max_split_size", "stitching", "static_plan", "amc", "tiering", "recompute",
    "offload", "periodic_check", "restart", "reuse_fp32_parameters",
)  # fmt: skip
_COMMUNICATION = (
    "overlap_gradients", "overlap_parameters", "overlap_tensor_parallel", "chunking", "topk_compression",
    "quantized_gradients", "algorithm",
)  # fmt: skip
OPTIMIZATION_IDS = (
    *(f"fusion.{name}" for name in _FUSIONS),
    *(f"memory.{name}" for name in _MEMORY),
    *(f"communication.{name}" for name in _COMMUNICATION),
    "parallel.layout",
    "host.graph_mode",
    "host.async_dispatch",
    "host.streams",
    "precision.mixed",
    "precision.quantized_training",
    "serving.dynamic_batching",
    "serving.prefix_cache",
    "serving.chunked_prefill",
    "serving.speculative",
    "serving.quantization",
    "graph.fusion",
)
"""Every id of the catalogue."""

SIMULATED_IN_TRAINING = frozenset(
    {
        "host.graph_mode",
        "host.async_dispatch",
        "fusion.add_norm",
        "precision.mixed",
        "precision.quantized_training",
        "fusion.attention",
        "fusion.rms_norm",
        "fusion.swiglu",
        "fusion.rope",
        "fusion.softmax_dropout",
        "fusion.cross_entropy",
        "fusion.optimizer",
        "fusion.gradient_accumulation",
        "fusion.matmul_all_reduce",
        "fusion.custom",
        "memory.expandable_segments",
        "memory.gc_threshold",
        "memory.max_split_size",
        "memory.stitching",
        "memory.static_plan",
        "memory.amc",
        "memory.tiering",
        "memory.recompute",
        "memory.offload",
        "memory.periodic_check",
        "memory.restart",
        "memory.reuse_fp32_parameters",
        "communication.overlap_gradients",
        "communication.overlap_parameters",
        "communication.overlap_tensor_parallel",
        "communication.chunking",
        "communication.topk_compression",
        "communication.quantized_gradients",
        "communication.algorithm",
        "host.streams",
        "parallel.layout",
    }
)
"""What the lowering of a training step acts on; others are refused with a plain error, never ignored."""
