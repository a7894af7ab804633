"""What a collective does, read from its name: HCCL's, NCCL's and the frameworks' words for one thing."""

from enum import IntEnum


class CollectiveKind(IntEnum):
    """The operations a communication group performs together."""

    UNKNOWN = 0
    ALL_REDUCE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_TO_ALL = 4
    BROADCAST = 5
    REDUCE = 6
    SCATTER = 7
    BARRIER = 8
    SEND = 9
    RECEIVE = 10
    SEND_RECEIVE = 11
    """Several sends and receives of one rank as one operator (``batchSendRecv``)."""


POINT_TO_POINT = (CollectiveKind.SEND, CollectiveKind.RECEIVE, CollectiveKind.SEND_RECEIVE)

_WORDS = (
    ("allreduce", CollectiveKind.ALL_REDUCE),
    ("allgather", CollectiveKind.ALL_GATHER),
    ("reducescatter", CollectiveKind.REDUCE_SCATTER),
    ("alltoall", CollectiveKind.ALL_TO_ALL),
    ("broadcast", CollectiveKind.BROADCAST),
    ("barrier", CollectiveKind.BARRIER),
    ("sendrecv", CollectiveKind.SEND_RECEIVE),
    ("send", CollectiveKind.SEND),
    ("receive", CollectiveKind.RECEIVE),
    ("recv", CollectiveKind.RECEIVE),
    ("scatter", CollectiveKind.SCATTER),
    ("reduce", CollectiveKind.REDUCE),
)
"""In the order they are looked for: a word that holds another one comes before it."""


def collective_kind(name: str) -> CollectiveKind:
    """Returns what the collective of this name does: ``hcom_allReduce__271_0_1``, ``ncclAllReduce``, ``all_reduce``."""
    letters = name.casefold().replace("_", "")
    return next((kind for word, kind in _WORDS if word in letters), CollectiveKind.UNKNOWN)
