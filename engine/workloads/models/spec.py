"""What a decoder model is made of, as the lowering to operators needs it."""

from dataclasses import dataclass

from engine.devices.spec import DType


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A decoder-only transformer.

    Attributes:
        id: Catalogue id, or a name given in a scenario.
        layers: Decoder layers.
        hidden: Width of the residual stream.
        ffn: Width inside the feed-forward block; of one expert where there are experts.
        heads: Query heads.
        kv_heads: Key and value heads.
        head_dim: Size of a head.
        vocab: Rows of the embedding, padding included.
        gated: SwiGLU (two input matrices) and RMSNorm with rotary positions; False is the GPT family: GELU, layer norm,
            learned positions, biases and dropout.
        experts: Experts per layer, 0 for a dense feed-forward block.
        top_k: Experts each token visits.
        sliding_window: Keys a query sees in windowed layers, 0 where every layer sees all.
        sliding_every: Every so many layers one is windowed (the first of them): 2 is every other layer.
        tied_embeddings: The output projection shares the embedding's weights.
        max_position: Rows of learned positions (GPT family).
        qkv_bias: Query, key and value projections have biases.
        qk_norm: Queries and keys are normalised per head.
        expert_bias: Router and experts have biases.
        attention_sinks: A learned logit per head joins the softmax.
        attention_bias: The output projection of attention has a bias.
        dtype: Of weights and activations in training.
        source: Where the numbers come from.
    """

    id: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    gated: bool = True
    experts: int = 0
    top_k: int = 0
    sliding_window: int = 0
    sliding_every: int = 1
    tied_embeddings: bool = False
    max_position: int = 0
    qkv_bias: bool = False
    qk_norm: bool = False
    expert_bias: bool = False
    attention_sinks: bool = False
    attention_bias: bool = False
    dtype: DType = DType.BF16
    source: str = ""

    @property
    def q_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads together (and of all value heads)."""
        return self.kv_heads * self.head_dim

    @property
    def ffn_matrices(self) -> int:
        """Matrices of one feed-forward block or expert: gate, up, down; or up, down."""
        return 3 if self.gated else 2

    def window_of(self, layer: int) -> int:
        """Returns the keys a query of this layer sees at most, 0 for all."""
        return self.sliding_window if self.sliding_window and layer % self.sliding_every == 0 else 0
