"""How many weights a model has, part by part: what memory and optimizer traffic are made of."""

from dataclasses import dataclass

from engine.workloads.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Weights of a whole model.

    Attributes:
        embedding_count: Token embedding, and learned positions where there are any.
        head_count: Output projection, 0 where it shares the embedding.
        attention_count: All attention blocks, biases and sinks included.
        ffn_count: All feed-forward blocks: every expert, its biases and the routers.
        norm_count: All norms.
        idle_expert_count: Weights of the experts a token does not visit.
    """

    embedding_count: int
    head_count: int
    attention_count: int
    ffn_count: int
    norm_count: int
    idle_expert_count: int

    @property
    def total_count(self) -> int:
        """All weights."""
        return self.embedding_count + self.head_count + self.attention_count + self.ffn_count + self.norm_count

    @property
    def active_count(self) -> int:
        """Weights one token is multiplied by, the output projection included and the embedding's lookup not.

        With shared embeddings the shared matrix counts once, as the output projection.
        """
        lookup = self.embedding_count if self.head_count else 0
        return self.total_count - self.idle_expert_count - lookup


def parameter_counts(model: ModelSpec) -> ParameterCounts:
    """Returns the weights of a model, from its shapes alone."""
    expert = model.ffn_matrices * model.hidden * model.ffn
    if model.expert_bias or not model.gated:
        expert += (model.ffn_matrices - 1) * model.ffn + model.hidden
    router = model.hidden * model.experts + (model.experts if model.expert_bias else 0)
    blocks = max(model.experts, 1)
    idle = blocks - model.top_k if model.experts else 0
    positions = 0 if model.gated else model.max_position * model.hidden
    return ParameterCounts(
        embedding_count=model.vocab * model.hidden + positions,
        head_count=0 if model.tied_embeddings else model.vocab * model.hidden,
        attention_count=model.layers * _attention_count(model),
        ffn_count=model.layers * (blocks * expert + router),
        norm_count=_norm_count(model),
        idle_expert_count=model.layers * idle * expert,
    )


def _attention_count(model: ModelSpec) -> int:
    inward = model.q_width + 2 * model.kv_width
    matrices = model.hidden * inward + model.q_width * model.hidden
    biases = (inward if model.qkv_bias or not model.gated else 0) + (
        model.hidden if model.attention_bias or not model.gated else 0
    )
    return matrices + biases + (model.heads if model.attention_sinks else 0)


def _norm_count(model: ModelSpec) -> int:
    """Two norms a layer and one at the end; a layer norm has a weight and a bias."""
    of_one = model.hidden if model.gated else 2 * model.hidden
    per_head = 2 * model.head_dim if model.qk_norm else 0
    return (2 * model.layers + 1) * of_one + model.layers * per_head
