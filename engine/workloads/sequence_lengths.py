"""Sequence lengths of every micro-batch of a run, drawn from a seeded distribution."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.workloads.scenario import LengthDistribution, Scenario

PAD_TO_TOKENS = 8
"""Lengths that vary are padded to a multiple of this, as data loaders do for tensor cores."""


@dataclass(frozen=True, slots=True, eq=False)
class RunLengths:
    """Lengths of all sequences of a run.

    Attributes:
        tokens: int64, shape (steps, replicas, micro-batches, sequences): real tokens.
        known: int64, shape (lengths,): every padded length that occurs, ascending.
        multiple: Padded lengths are multiples of this.
    """

    tokens: Int64Array
    known: Int64Array
    multiple: int

    def index_of(self, tokens: Int64Array) -> int:
        """Returns the index in ``known`` of the padded length of sequences computed together."""
        return int(np.searchsorted(self.known, _padded(tokens.max(), self.multiple)))


def draw_lengths(scenario: Scenario, replicas: int) -> RunLengths:
    """Returns the lengths of a run; one replica is enough where all have the same.

    A lognormal distribution of mean m and σ has the median m·exp(−σ²/2).
    """
    lengths, layout = scenario.batch.lengths, scenario.parallel
    shape = (scenario.run.steps, replicas, scenario.micro_batch_count, scenario.batch.micro)
    split = layout.context * (layout.tensor if layout.sequence_parallel else 1)
    generator = np.random.default_rng([scenario.seed, 1])
    multiple = split
    if lengths.distribution is LengthDistribution.FIXED:
        return RunLengths(
            np.broadcast_to(np.int64(lengths.mean), shape), np.array([int(lengths.mean)], np.int64), multiple
        )
    if lengths.distribution is LengthDistribution.LOGNORMAL:
        location = np.log(lengths.mean) - lengths.sigma**2 / 2
        drawn = generator.lognormal(location, lengths.sigma, shape)
    else:
        drawn = generator.uniform(lengths.minimum, lengths.maximum + 1, shape)
    tokens = np.clip(np.floor(drawn).astype(np.int64), lengths.minimum, lengths.maximum)
    multiple = int(np.lcm(split, PAD_TO_TOKENS))
    return RunLengths(tokens, np.unique(_padded(tokens, multiple)), multiple)


def _padded(tokens: Int64Array, multiple: int) -> Int64Array:
    return -(-np.asarray(tokens, np.int64) // multiple) * multiple
