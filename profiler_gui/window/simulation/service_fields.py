"""The fields of a service in the New Simulation dialog; see ``fields``."""

from __future__ import annotations

from profiler_gui.window.simulation.fields import Group, ScenarioField


def service_fields() -> tuple[ScenarioField, ...]:
    """Returns all fields of a service with the engine's own defaults and choices, in the order of the form."""
    from engine.devices.catalogue import device_ids
    from engine.workloads.models.catalogue import model_ids

    return (
        ScenarioField(("name",), "&Name", Group.JOB, "unnamed"),
        ScenarioField(("model", "preset"), "&Model", Group.JOB, "gpt-oss-20b", model_ids()),
        ScenarioField(("device", "preset"), "&Device", Group.JOB, "910b2", device_ids()),
        ScenarioField(("device", "count"), "De&vices", Group.JOB, 1, tip="How many devices the job runs on."),
        ScenarioField(("seed",), "See&d", Group.JOB, 0, minimum=0, tip="The same scenario and seed run the same."),
        ScenarioField(("parallel", "tensor"), "&Tensor", Group.LAYOUT, 1, tip="Devices that share every layer."),
        ScenarioField(("parallel", "expert"), "&Expert", Group.LAYOUT, 1, tip="Devices that share the experts."),
        *_request_fields(),
        *_engine_fields(),
        ScenarioField(
            ("serving", "slo_ttft_ms"), "First to&ken within", Group.LIMITS, 0.0, minimum=0, unit="ms", unset="no limit"
        ),
        ScenarioField(
            ("serving", "slo_tpot_ms"), "&Others within", Group.LIMITS, 0.0, minimum=0, unit="ms", unset="no limit"
        ),
    )


def _request_fields() -> tuple[ScenarioField, ...]:
    from engine.workloads.serving.settings import Arrival, RequestSettings

    usual, group, place = RequestSettings(), Group.REQUESTS, ("serving", "requests")
    return (
        ScenarioField((*place, "arrival"), "&Arrival", group, str(usual.arrival), tuple(map(str, Arrival))),
        ScenarioField(
            (*place, "rate_per_s"),
            "&Rate",
            group,
            usual.rate_per_s,
            minimum=0.01,
            unit="/s",
            tip="Requests per second (poisson, bursty).",
        ),
        ScenarioField((*place, "users"), "&Users", group, usual.users, tip="Users who ask again (closed_loop)."),
        ScenarioField((*place, "count"), "Re&quests", group, usual.count, tip="Requests in all."),
        ScenarioField((*place, "prompt_tokens"), "&Prompt", group, usual.prompt.mean, unit="tokens"),
        ScenarioField((*place, "output_tokens"), "An&swer", group, usual.output.mean, unit="tokens"),
        ScenarioField(
            (*place, "shared_prefixes"),
            "Shared be&ginnings",
            group,
            usual.shared_prefixes,
            minimum=0,
            tip="How many different texts prompts begin with.",
        ),
        ScenarioField(
            (*place, "shared_tokens"),
            "Their &length",
            group,
            usual.shared_tokens,
            minimum=0,
            unit="tokens",
            tip="Tokens prompts have in common, for the prefix cache.",
        ),
    )


def _engine_fields() -> tuple[ScenarioField, ...]:
    from engine.workloads.serving.settings import Batching, Preemption, ServingSettings, WeightFormat

    usual, group = ServingSettings(), Group.ENGINE
    return (
        ScenarioField(("serving", "batching"), "&Batching", group, str(usual.batching), tuple(map(str, Batching))),
        ScenarioField(("serving", "max_batch"), "Sequences at &once", group, usual.max_batch),
        ScenarioField(
            ("serving", "max_wait_ms"),
            "&Wait for more",
            group,
            0.0,
            minimum=0,
            unit="ms",
            tip="How long an idle engine waits for more requests before it begins.",
        ),
        ScenarioField(("serving", "max_batched_tokens"), "Tokens of an &iteration", group, usual.max_batched_tokens),
        ScenarioField(("serving", "weights"), "Weig&hts", group, str(usual.weights), tuple(map(str, WeightFormat))),
        ScenarioField(
            ("serving", "preemption"), "Without KV blo&cks", group, str(usual.preemption), tuple(map(str, Preemption))
        ),
        ScenarioField(("serving", "prefix_cache"), "Prefi&x cache", group, usual.prefix_cache),
        ScenarioField(("serving", "graph_mode"), "Graph mode", group, usual.graph_mode),
        ScenarioField(("serving", "chunked_prefill"), "Chunked prefill", group, usual.chunked_prefill),
    )
