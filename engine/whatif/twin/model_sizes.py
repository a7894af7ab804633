"""What model a recorded rank trains: its sizes, read from the shapes of kernels."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from engine.core.errors import MissingDataError
from engine.whatif.twin.products import RankKernels, without

ATTENTION = ("FlashAttentionScore", "FlashAttentionScoreGrad")
SOFTMAX = ("SoftmaxV2", "ScaledMaskedSoftmax", "ScaledMaskedSoftmaxV2")
ROTARY = ("RotaryPositionEmbedding", "RotaryMul", "ApplyRotaryPosEmb")
EMBEDDING_GRADIENT = ("EmbeddingDenseGrad", "EmbeddingDenseGradV2")
_EXPERTS = ("GroupedMatmul", "GroupedMatMul", "MoeTokenPermute", "MoeTokenPermuteV2")
_STATISTICS = 8
"""Last extent of the softmax statistics FlashAttention keeps: [batch, heads, queries, 8]."""
_HEAD_SIZE = 128
"""Of a head where nothing tells it: the size of most published decoder models."""


@dataclass(frozen=True, slots=True)
class AttentionSizes:
    """What the attention of one rank works on.

    Attributes:
        batch: Sequences of a micro-batch.
        sequence: Tokens of each on this rank.
        query_width: Query heads × size of a head, on this rank.
        key_width: The same of keys; None where it is not told.
        head_size: None where it is not told.
    """

    batch: int
    sequence: int
    query_width: int
    key_width: int | None
    head_size: int | None

    @property
    def tokens(self) -> int:
        """Of a micro-batch on this rank."""
        return self.batch * self.sequence


@dataclass(frozen=True, slots=True)
class RankModel:
    """The model as one rank holds it: widths are of its share in tensor parallelism.

    Attributes:
        attention: See AttentionSizes.
        hidden: Width of the residual stream.
        key_width: Key heads × size of a head.
        head_size: Of a head.
        ffn: Width inside the feed-forward block.
        gated: Whether that has a gate.
        vocab: Rows of the embedding; None on a stage without one.
        layer_passes: Layers × micro-batches of a step.
        micro_batches: Of a step; None on a stage that does not tell.
        forward_ratio: Forward passes of attention per backward pass: 2 where it is computed again.
        product_ratio: Products per weight, layer and micro-batch: 3, and 4 where all is computed again.
        assumed: What had to be assumed.
    """

    attention: AttentionSizes
    hidden: int
    key_width: int
    head_size: int
    ffn: int
    gated: bool
    vocab: int | None
    layer_passes: int
    micro_batches: int | None
    forward_ratio: float
    product_ratio: float
    assumed: tuple[str, ...]


def rank_model(kernels: RankKernels) -> RankModel:
    """Returns the model a rank's kernels show.

    Raises:
        MissingDataError: They do not show one; it names what is missing.
    """
    if any(name in kernels.types for name in _EXPERTS):
        message = "sizes of a mixture of experts that shapes alone tell (how many experts a token visits)"
        raise MissingDataError(message, "write the scenario by hand: docs/scenarios.md")
    attention = attention_sizes(kernels)
    pairs = _weight_pairs(kernels, attention.tokens)
    if not pairs:
        raise MissingDataError("matrix products over its tokens", "record shapes: profiler level 1 or 2")
    hidden = _most_common(extent for pair, count in pairs.items() for extent in set(pair) for _ in range(count))
    widths = {_other(pair, hidden): count for pair, count in pairs.items() if hidden in pair}
    vocab, (key_width, ffn, gated) = _embedding_and_layer(attention, _vocabulary(kernels, hidden, widths), widths)
    layer_widths = {width: count for width, count in widths.items() if width != vocab}
    assumed = []
    head_size = attention.head_size
    if head_size is None:
        head_size = _HEAD_SIZE if attention.query_width % _HEAD_SIZE == 0 else attention.query_width
        assumed.append(f"heads of {head_size}: their size is in no shape")
    passes = _layer_passes(kernels, layer_widths, ffn)
    heads_passes = widths.get(vocab or 0, 0) / 3 / kernels.step_count
    embedded = kernels.per_step(*EMBEDDING_GRADIENT)
    micro = round(embedded or heads_passes) or None
    forward = sum(kernels.types.get(name, 0) for name in (ATTENTION[0], *SOFTMAX)) / kernels.step_count
    return RankModel(
        attention=attention,
        hidden=hidden,
        key_width=key_width,
        head_size=head_size,
        ffn=ffn,
        gated=gated,
        vocab=vocab,
        layer_passes=passes,
        micro_batches=micro,
        forward_ratio=forward / passes,
        product_ratio=layer_widths[ffn] / kernels.step_count / passes / (1 if 2 * ffn in layer_widths else 2),
        assumed=tuple(assumed),
    )


def attention_sizes(kernels: RankKernels) -> AttentionSizes:
    """Returns what attention works on. Raises MissingDataError where no kernel tells."""
    rotary = next((kernel.inputs[0] for kernel, _ in kernels.of(*ROTARY) if len(kernel.inputs[0]) == 4), None)
    head_size = rotary[-1] if rotary else None
    for kernel, _ in sorted(kernels.of(*ATTENTION), key=lambda item: item[0].op_type, reverse=True):
        shapes = (*kernel.outputs, *kernel.inputs)
        statistics = next((shape for shape in shapes if len(shape) == 4 and shape[-1] == _STATISTICS), None)
        query, key = kernel.inputs[0], kernel.inputs[1] if len(kernel.inputs) > 1 else ()
        if statistics is not None:
            batch, heads, sequence, _ = statistics
            width = prod(query) // (batch * sequence)
            return AttentionSizes(batch, sequence, width, prod(key) // (batch * sequence), width // heads)
        if len(query) == 3:
            sequence, batch = max(query[:2]), min(query[:2])
            return AttentionSizes(batch, sequence, query[2], None, head_size)
    for kernel, _ in kernels.of(*SOFTMAX):
        scores = kernel.inputs[0]
        if len(scores) == 4 and scores[-1] == scores[-2]:
            batch, heads, sequence = scores[:3]
            size = _unfused_head_size(kernels, batch * heads, sequence) or head_size
            if size is not None:
                return AttentionSizes(batch, sequence, heads * size, None, size)
    raise MissingDataError(
        "attention kernels with shapes",
        "a twin is a decoder-only transformer: record one at profiler level 1 or 2, or write the scenario by hand",
    )


def _unfused_head_size(kernels: RankKernels, batch: int, sequence: int) -> int | None:
    """Returns the inner extent of queries × keys."""
    sizes = [
        extent
        for kernel, _ in kernels.of("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
        for shape in kernel.inputs[:2]
        if len(shape) == 3 and shape[0] == batch and sequence in shape[1:]
        for extent in shape[1:]
        if extent != sequence
    ]
    return _most_common(sizes) if sizes else None


def _weight_pairs(kernels: RankKernels, tokens: int) -> dict[tuple[int, int], int]:
    """Returns extents of weights with how often each took part in a product over the rank's tokens."""
    pairs: Counter[tuple[int, int]] = Counter()
    for product in kernels.products:
        pair = without(product.extents, tokens)
        if pair is not None:
            pairs[pair] += product.count
    return dict(pairs)


def _most_common(values: Iterable[int]) -> int:
    return Counter(values).most_common(1)[0][0]


def _other(pair: tuple[int, int], hidden: int) -> int:
    return pair[1] if pair[0] == hidden else pair[0]


def _vocabulary(kernels: RankKernels, hidden: int, widths: dict[int, int]) -> int | None:
    """Returns the rows of the embedding on this rank, None where it has none."""
    for kernel, _ in kernels.of("GatherV2", "GatherV3"):
        table = kernel.inputs[0]
        if len(table) == 2 and table[1] == hidden:
            return table[0]
    for kernel, _ in kernels.of("CrossEntropyLoss", "SoftmaxV2", "LogSoftmaxV2", "ArgMaxWithValue"):
        last = kernel.inputs[0][-1] if kernel.inputs[0] else 0
        if last in widths:
            return last
    for kernel, _ in kernels.of("Add"):
        table = kernel.inputs[0]
        rare = min(widths.values())
        if len(table) == 2 and table[1] == hidden and widths.get(table[0], rare) == rare and table[0] > 4 * hidden:
            return table[0]
    return None


def _embedding_and_layer(
    attention: AttentionSizes, told: int | None, widths: dict[int, int]
) -> tuple[int | None, tuple[int, int, bool]]:
    """Returns the rows of the embedding and what ``_layer`` makes of the other widths.

    Where no kernel tells which width is the embedding's, it is the one without which a layer comes out even.

    Raises:
        MissingDataError: No layer comes out.
    """
    for vocab in (told,) if told is not None else (None, *sorted(widths, reverse=True)):
        layer = _layer(attention, {width: count for width, count in widths.items() if width != vocab})
        if layer is not None:
            return vocab, layer
    raise MissingDataError(
        f"layer whose weights can be told apart (widths {', '.join(map(str, sorted(widths)))})",
        "write the scenario by hand: docs/scenarios.md",
    )


def _layer(attention: AttentionSizes, widths: dict[int, int]) -> tuple[int, int, bool] | None:
    """Returns the key width, the feed-forward width and whether that has a gate, from the weights of a layer.

    A layer has queries, keys and values as one weight [hidden, q + 2 kv], the output [q, hidden], and feed-forward
    [hidden, 2 f] (gate and up as one) or [hidden, f], and [f, hidden]. None where the widths do not come out even.
    """
    query = attention.query_width
    own = set(widths) | {query}
    for joint in sorted(own, key=lambda width: width != query + 2 * (attention.key_width or 0)):
        key = (joint - query) // 2
        if joint <= query or (joint - query) % 2 or query % key or (attention.key_width not in (None, key)):
            continue
        rest = sorted(own - {query, joint})
        if len(rest) == 2 and rest[1] == 2 * rest[0]:
            return key, rest[0], True
        if len(rest) == 1:
            # Gate, up and down as three weights, or up and down alone: one product set more, or none.
            ratio = widths[rest[0]] / widths.get(query, widths[rest[0]] / 2)
            return key, rest[0], ratio > 2.5
    return None


def _layer_passes(kernels: RankKernels, widths: dict[int, int], ffn: int) -> int:
    """Returns layers × micro-batches of a step: backward passes of attention, else products of the last weight / 3."""
    backward = kernels.per_step(ATTENTION[1])
    return round(backward) if backward else max(round(widths[ffn] / 3 / kernels.step_count), 1)
