"""A pipeline's step reckoned from what its stages compute: what a better balance or more micro-batches could win."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.advisor.collective_purpose import Purpose, purpose_of
from engine.advisor.examination import Examination


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of a job.

    Attributes:
        computing_ns: By stage: computing of the typical step, mean over the stage's ranks that list it.
        ranks: By stage.
        micro_batch_count: Micro-batches of a step; None where it cannot be told.
        layer_count: Layers of the slowest stage; None where they cannot be told.
    """

    computing_ns: tuple[float, ...]
    ranks: tuple[tuple[int, ...], ...]
    micro_batch_count: int | None
    layer_count: int | None

    @property
    def slowest(self) -> int:
        """The stage that computes the longest."""
        return max(range(len(self.computing_ns)), key=lambda stage: self.computing_ns[stage])


def pipeline_of(examination: Examination) -> Pipeline | None:
    """Returns the pipeline; None where the job has none, or the computing of a stage is not known."""
    stages = examination.summary.communication.stages
    if len(set(stages.values())) < 2:
        return None
    ranks = tuple(tuple(sorted(r for r, s in stages.items() if s == stage)) for stage in sorted(set(stages.values())))
    computing = [
        [
            step.computing_ns
            for rank in members
            if (step := examination.steps.get(rank)) and step.computing_ns is not None
        ]
        for members in ranks
    ]
    if not all(computing):
        return None
    means = tuple(float(np.mean(values)) for values in computing)
    slowest = max(range(len(means)), key=lambda stage: means[stage])
    return Pipeline(means, ranks, _micro_batches(examination, ranks), _layers(examination, ranks[slowest]))


def makespan_ns(computing_ns: Sequence[float], micro_batch_count: int) -> float:
    """Returns the computing a 1F1B step cannot be shorter than.

    One micro-batch goes through all stages, the others follow at the pace of the slowest. Communication and the host
    are left out.
    """
    per_batch = [value / micro_batch_count for value in computing_ns]
    return sum(per_batch) + (micro_batch_count - 1) * max(per_batch)


def _micro_batches(examination: Examination, ranks: tuple[tuple[int, ...], ...]) -> int | None:
    """Returns the micro-batches of a step: the scenario's, or what the last stage's exchanges with its neighbour tell.

    The last stage of a 1F1B schedule receives each micro-batch and returns its gradient. Where both are one exchange
    (batchSendRecv) there is one more exchange than micro-batches; where they are apart, one receive per micro-batch.
    """
    if examination.scenario is not None:
        return examination.scenario.micro_batch_count
    for rank in ranks[-1]:
        window = examination.windows.get(rank)
        if window is None:
            continue
        names = [item.name.lower() for item in examination.collectives(rank) if purpose_of(item) is Purpose.PIPELINE]
        joint = sum("sendrecv" in name for name in names) / window.step_count
        received = sum("recv" in name or "receive" in name for name in names) / window.step_count
        count = joint - 1 if joint else received
        if count >= 1 and count == int(count):
            return int(count)
    return None


def _layers(examination: Examination, ranks: tuple[int, ...]) -> int | None:
    """Returns the layers of a stage, found by the periodic sequence of kernels or by module names; None without."""
    for rank in ranks:
        if rank not in examination.windows:
            continue
        paths = {item.path for item in examination.summary.rank(rank).modules}
        layers = {path for path in paths if path.rsplit("/", 1)[-1].startswith("layer ")}
        if layers:
            return len(layers)
    if examination.scenario is not None:
        return examination.scenario.model.layers // examination.scenario.parallel.pipeline
    return None
