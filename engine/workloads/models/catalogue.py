"""The models that ship, one data file each."""

import json
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import resources
from typing import Any

from engine.core.errors import EngineError
from engine.devices.spec import Provenance
from engine.workloads.models.spec import ModelSpec

FORMAT = 1
"""Version of the data files."""


class ModelDataError(EngineError):
    """A model file, or the name of one, that cannot be used."""


@dataclass(frozen=True, slots=True)
class CataloguedModel:
    """A model with what is published about it.

    Attributes:
        spec: Its shapes.
        title: For people.
        kind: How far the shapes can be trusted.
        published_parameters: Weights as published, rounded as published.
        published_source: Where.
    """

    spec: ModelSpec
    title: str
    kind: Provenance
    published_parameters: float
    published_source: str


def model_ids() -> tuple[str, ...]:
    """Returns the ids of all models, sorted."""
    folder = resources.files("engine.workloads.models").joinpath("data")
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def load_model(model_id: str) -> ModelSpec:
    """Returns a model's shapes by its id. Raises ModelDataError that names the nearest known ids."""
    return catalogued_model(model_id).spec


def catalogued_model(model_id: str) -> CataloguedModel:
    """Returns a model with what is published about it. Raises ModelDataError that names the nearest known ids."""
    wanted, known = model_id.casefold(), model_ids()
    if wanted not in known:
        near = get_close_matches(wanted, known) or list(known)
        message = f"no model {model_id!r}; nearest: {', '.join(near)}"
        raise ModelDataError(message)
    path = resources.files("engine.workloads.models").joinpath("data", f"{wanted}.json")
    return model_from_document(json.loads(path.read_text(encoding="utf-8")))


def model_from_document(document: dict[str, Any]) -> CataloguedModel:
    """Returns the model a parsed data file describes. Raises ModelDataError."""
    name = document.get("id", "?")
    if document.get("format") != FORMAT:
        message = f"model {name}: format {document.get('format')!r}, this release reads {FORMAT}"
        raise ModelDataError(message)
    shapes = document.get("fields", {})
    unknown = set(shapes) - {item.name for item in fields(ModelSpec)}
    if unknown:
        message = f"model {name}: unknown fields {', '.join(sorted(unknown))}"
        raise ModelDataError(message)
    try:
        return CataloguedModel(
            spec=ModelSpec(id=document["id"], source=document["source"], **shapes),
            title=document["title"],
            kind=Provenance(document["kind"]),
            published_parameters=float(document["published_parameters"]),
            published_source=document["published_source"],
        )
    except (KeyError, TypeError, ValueError) as error:
        message = f"model {name}: bad data file: {error!r}"
        raise ModelDataError(message) from error
