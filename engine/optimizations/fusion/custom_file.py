"""The small file that describes a fused kernel of one's own: which kernels it replaces and what it costs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ScenarioError
from engine.workloads.scenario_keys import nearest

VECTOR_INSTRUCTIONS = (
    "vabs", "vadd", "vadds", "vand", "vaxpy", "vcadd", "vcmax", "vcmin", "vcmp", "vconv", "vdiv", "vexp", "vln",
    "vmadd", "vmax", "vmaxs", "vmin", "vmins", "vmla", "vmul", "vmuls", "vnot", "vor", "vrec", "vrelu", "vrsqrt",
    "vsel", "vsqrt", "vsub",
)  # fmt: skip
"""Names of vector instructions; every one is priced as one pass over its operand, which is the least it can take."""

_PATTERN_KEYS = ("kernels", "title")
_PRICE_KEYS = ("instructions", "products", "elements", "flops", "bytes", "efficiency")
_PRODUCTS = ("cube", "vector")


@dataclass(frozen=True, slots=True)
class CustomKernel:
    """A fused kernel somebody wants to write.

    Attributes:
        title: Its name.
        kernels: Names of the kernels it replaces, in order.
        instructions: Vector instructions it runs over every element.
        products_on_vector: Whether it computes matrix products with its vector instructions, not on the matrix unit.
        elements: Elements of one call; None for those of the kernels it replaces.
        flops: Operations on the matrix unit of one call; None for those of the products it replaces.
        bytes: Bytes one call moves; None for the first input and last output of the chain.
        efficiency_ratio: Share of the units' peak rates it reaches.
    """

    title: str
    kernels: tuple[str, ...]
    instructions: tuple[str, ...]
    products_on_vector: bool
    elements: float | None
    flops: float | None
    bytes: float | None
    efficiency_ratio: float


def read_custom_kernel(path: Path) -> CustomKernel:
    """Returns the kernel a TOML file describes.

    Raises:
        ScenarioError: The file cannot be read, is no TOML, or has a key or value that makes no sense; it says which.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"fusion.custom: {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"fusion.custom: {path} is no TOML file: {error}") from error
    _check_keys(path, "the file", document, ("pattern", "price"))
    pattern, price = _table(path, document, "pattern"), _table(path, document, "price")
    _check_keys(path, "[pattern]", pattern, _PATTERN_KEYS)
    _check_keys(path, "[price]", price, _PRICE_KEYS)
    kernels = _kernels(path, pattern)
    products = price.get("products", "cube")
    if products not in _PRODUCTS:
        raise ScenarioError(f'fusion.custom: {path}: price.products = {products!r} must be "cube" or "vector"')
    return CustomKernel(
        title=_text(path, pattern, "pattern.title", "+".join(kernels)),
        kernels=kernels,
        instructions=_instructions(path, price),
        products_on_vector=products == "vector",
        elements=_positive(path, price, "elements"),
        flops=_positive(path, price, "flops"),
        bytes=_positive(path, price, "bytes"),
        efficiency_ratio=_efficiency(path, price),
    )


def _table(path: Path, document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name)
    if not isinstance(table, dict):
        raise ScenarioError(f"fusion.custom: {path} has no table [{name}]; it needs [pattern] and [price]")
    return table


def _check_keys(path: Path, where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ScenarioError(f"fusion.custom: {path}: {where} has an unknown key {key}; {nearest(key, known)}")


def _kernels(path: Path, pattern: Mapping[str, Any]) -> tuple[str, ...]:
    names = pattern.get("kernels")
    if not isinstance(names, list) or len(names) < 2 or not all(isinstance(name, str) and name for name in names):
        message = f'fusion.custom: {path}: pattern.kernels must list two names or more, such as ["Mul", "Add"]'
        raise ScenarioError(message)
    return tuple(names)


def _instructions(path: Path, price: Mapping[str, Any]) -> tuple[str, ...]:
    text = _text(path, price, "price.instructions", "")
    names = tuple(name.strip().casefold() for name in text.split(",") if name.strip())
    for name in names:
        if name not in VECTOR_INSTRUCTIONS:
            hint = nearest(name, VECTOR_INSTRUCTIONS)
            raise ScenarioError(
                f"fusion.custom: {path}: price.instructions names {name}, no vector instruction; {hint}"
            )
    if not names and "flops" not in price and "bytes" not in price:
        raise ScenarioError(f"fusion.custom: {path}: [price] needs instructions, flops or bytes")
    return names


def _text(path: Path, table: Mapping[str, Any], key: str, default: str) -> str:
    value = table.get(key.rpartition(".")[2], default)
    if not isinstance(value, str):
        raise ScenarioError(f"fusion.custom: {path}: {key} = {value!r} must be text")
    return value


def _positive(path: Path, price: Mapping[str, Any], key: str) -> float | None:
    value = price.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ScenarioError(f"fusion.custom: {path}: price.{key} = {value!r} must be a number above 0")
    return float(value)


def _efficiency(path: Path, price: Mapping[str, Any]) -> float:
    value = _positive(path, price, "efficiency")
    if value is None:
        return 1.0
    if value > 1:
        raise ScenarioError(
            f"fusion.custom: {path}: price.efficiency = {value:g} must be at most 1: a share of the peak"
        )
    return value
