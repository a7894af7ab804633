"""The operator's type behind the name a profiler gives a kernel."""

from engine.analyses.fusion.kernel_words import ascend_type_of, framework_call_of


def kernel_type(name: str) -> str:
    """Returns ``"ApplyAdamWV2"`` for ``"aclnnApplyAdamWV2_ApplyAdamWV2AiCore_ApplyAdamWV2"``, other names unchanged."""
    return ascend_type_of(name) if framework_call_of(name) else name
