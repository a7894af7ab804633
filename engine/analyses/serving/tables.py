"""What a served run is, recorded or simulated: its requests, its iterations, and what each request was doing when."""

from dataclasses import dataclass
from enum import IntEnum

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array


class RequestStatus(IntEnum):
    """How a request ended."""

    FINISHED = 0
    REJECTED = 1
    """The queue was full when it arrived."""
    TIMED_OUT = 2
    """It waited longer than the limit before anything of it ran."""
    TOO_LONG = 3
    """Its keys and values can never fit."""


class AdmissionLimit(IntEnum):
    """What kept the first request of the queue out of an iteration."""

    NONE = 0
    """Nobody waited."""
    PLACES = 1
    """The batch was full."""
    TOKENS = 2
    """The iteration had no tokens left for it."""
    BLOCKS = 3
    """No blocks of keys and values were left for it."""


class PhaseKind(IntEnum):
    """What a request is doing."""

    QUEUED = 0
    PREFILL = 1
    DECODE = 2
    PREEMPTED = 3
    """It lost its keys and values (or they wait in the host's memory) and stands at the head of the queue."""


@dataclass(frozen=True, slots=True, eq=False)
class ServedRequests:
    """Requests in order of their number. Arrays of shape (n,); times are ns from the start, −1 for what never happened.

    Attributes:
        arrival_ns: int64.
        prompt_tokens: int64.
        output_tokens: int64 tokens produced.
        session: int32, −1 for a request of its own.
        scheduled_ns: int64, when it first got a place in a batch.
        first_token_ns: int64.
        last_token_ns: int64.
        cached_tokens: int64 tokens of the prompt found in the prefix cache when it was first scheduled.
        preemptions: int32.
        status: uint8 RequestStatus.
    """

    arrival_ns: Int64Array
    prompt_tokens: Int64Array
    output_tokens: Int64Array
    session: Int32Array
    scheduled_ns: Int64Array
    first_token_ns: Int64Array
    last_token_ns: Int64Array
    cached_tokens: Int64Array
    preemptions: Int32Array
    status: UInt8Array

    def __len__(self) -> int:
        return len(self.arrival_ns)

    @property
    def finished(self) -> BoolArray:
        """bool, shape (n,)."""
        done: BoolArray = self.status == RequestStatus.FINISHED
        return done


@dataclass(frozen=True, slots=True, eq=False)
class Iterations:
    """Steps of the engine in order. int64 arrays of shape (n,) unless said otherwise.

    Attributes:
        start_ns: When it began.
        end_ns: When its tokens were there.
        host_ns: Host time of it: dispatch and the engine's own work.
        device_ns: Device time of it; the longer of the two, plus what cannot overlap, is its length.
        prefill_tokens: Tokens of prompts computed.
        decode_sequences: Sequences that got a token.
        padded_tokens: Tokens computed for nothing: padding, and sequences that were done already (static batching).
        running: Sequences in the batch.
        waiting: Requests in the queue after admission.
        kv_blocks: Blocks of keys and values held by running sequences.
        cached_blocks: Blocks only the prefix cache holds.
        limit: AdmissionLimit that kept the first waiting request out.
    """

    start_ns: Int64Array
    end_ns: Int64Array
    host_ns: Int64Array
    device_ns: Int64Array
    prefill_tokens: Int64Array
    decode_sequences: Int64Array
    padded_tokens: Int64Array
    running: Int64Array
    waiting: Int64Array
    kv_blocks: Int64Array
    cached_blocks: Int64Array
    limit: Int64Array

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """What requests were doing, in order of its beginning. Arrays of shape (n,).

    Attributes:
        request: int32 number of the request.
        kind: uint8 PhaseKind.
        start_ns: int64.
        end_ns: int64.
    """

    request: Int32Array
    kind: UInt8Array
    start_ns: Int64Array
    end_ns: Int64Array

    def __len__(self) -> int:
        return len(self.request)


@dataclass(frozen=True, slots=True)
class BlocksLeft:
    """Where the blocks of keys and values are when a run has ended.

    Attributes:
        free: Of nobody.
        held: Of sequences; 0 where every request gave its blocks back.
        cached: Of the prefix cache alone.
    """

    free: int
    held: int
    cached: int


@dataclass(frozen=True, slots=True, eq=False)
class ServedRun:
    """A run of a service.

    Attributes:
        requests: What was asked.
        iterations: What the engine did; empty where only requests were recorded.
        phases: What each request was doing; empty likewise.
        kv_block_count: Blocks of keys and values there are, 0 where unknown.
        kv_block_tokens: Tokens of a block, 0 where unknown.
        blocks_left: Blocks after the last request; None where no pool was kept.
    """

    requests: ServedRequests
    iterations: Iterations
    phases: Phases
    kv_block_count: int = 0
    kv_block_tokens: int = 0
    blocks_left: BlocksLeft | None = None
