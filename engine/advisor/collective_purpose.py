"""What a collective is for, told by its group's name and its kind."""

from enum import StrEnum

from engine.analyses.communication import Collective

_DATA = frozenset({"dp", "dp_cp", "data_parallel", "fsdp", "ep_dp", "dp_modulo_exp", "intra_dp_cp", "dp_ep"})
_TENSOR = frozenset({"tp", "tensor_parallel", "tp_cp", "mp_tp"})
_PIPELINE = frozenset({"pp", "pipeline", "pipeline_parallel", "pipeline_model_parallel"})
_POINT_TO_POINT = ("send", "recv", "receive")
_CARRIES_ALL_TO_ALL = "kernelsendrecv"
"""NCCL has one kernel for sends between stages and for all-to-all: alone it does not tell which."""
_GRADIENT_KINDS = ("allreduce", "reducescatter")
_GATHER_KINDS = ("allgather",)


class Purpose(StrEnum):
    """For what ranks communicate; the values are shown to people."""

    GRADIENTS = "gradients"
    PARAMETERS = "parameters"
    TENSOR = "tensor parallelism"
    PIPELINE = "pipeline stages"
    OTHER = "other"


def purpose_of(collective: Collective) -> Purpose:
    """Returns the purpose. Where the capture names no group, reductions count as gradients, as in data parallelism."""
    kind = "".join(letter for letter in collective.name.lower() if letter.isalpha())
    words = {word.strip() for word in collective.group_name.lower().split(" or ")} - {""}
    if words & _PIPELINE and any(word in kind for word in _POINT_TO_POINT):
        return Purpose.PIPELINE
    if any(word in kind for word in _POINT_TO_POINT):
        return Purpose.OTHER if words or _CARRIES_ALL_TO_ALL in kind else Purpose.PIPELINE
    if words & _TENSOR:
        return Purpose.TENSOR
    if words and not words & _DATA:
        return Purpose.OTHER
    if any(word in kind for word in _GATHER_KINDS):
        return Purpose.PARAMETERS
    return Purpose.GRADIENTS if any(word in kind for word in _GRADIENT_KINDS) else Purpose.OTHER
