"""Fusion passes over an ONNX graph: chains become one node each, whose meaning is kept as a function of the model.

The file written stays valid ONNX: a fused node calls a function that holds the nodes it replaced, so any runtime that
does not know the fused kernel runs them one by one with the same result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.workloads.onnx_models.model_file import OnnxModel
from engine.workloads.onnx_models.patterns import PATTERNS, Pattern, Step

DOMAIN = "cannscope.fused"


@dataclass(frozen=True, slots=True)
class FusionPass:
    """What one pass did.

    Attributes:
        name: Of the pass.
        matched: Chains found.
        replaced: Nodes they were made of.
        kernel: What the fused node stands for on the target.
    """

    name: str
    matched: int
    replaced: int
    kernel: str


def fuse(model: OnnxModel, cancel: CancelToken = NEVER_CANCELLED) -> tuple[FusionPass, ...]:
    """Fuses the chains of the main graph in place and returns what each pass did, those that found nothing included."""
    passes = []
    for pattern in PATTERNS:
        cancel.check()
        chains = _chains(model, pattern)
        for chain in chains:
            _replace(model, pattern, chain)
        passes.append(FusionPass(pattern.name, len(chains), sum(len(chain) for chain in chains), pattern.kernel))
    return tuple(passes)


def _chains(model: OnnxModel, pattern: Pattern) -> list[list[Any]]:
    """Returns disjoint matches of a pattern, in graph order. A loop over nodes: graphs are small beside traces."""
    taken: set[Any] = set()
    found = []
    outputs = set(model.graph.outputs)
    for node in model.graph:
        if node in taken or not _fits(node, pattern.steps[0]):
            continue
        chain = _grown(node, pattern, taken, outputs)
        if chain is not None:
            found.append(chain)
            taken.update(chain)
    return found


def _fits(node: Any, step: Step) -> bool:
    return str(node.op_type) in step.operators and node.domain in ("", DOMAIN)


def _grown(first: Any, pattern: Pattern, taken: set[Any], outputs: set[Any]) -> list[Any] | None:
    """Returns the longest chain from a node that nothing outside looks into, None where there is none."""
    chain = [first]
    best = None
    for step in pattern.steps[1:]:
        matched = 0
        while matched < step.repeats:
            following = next((node for node in _consumers(chain) if _fits(node, step) and node not in taken), None)
            if following is None:
                break
            chain.append(following)
            matched += 1
        if matched == 0 and not step.optional:
            return best
        if len(chain) >= pattern.least and _is_closed(chain, outputs) and _rest_is_optional(pattern, step):
            best = list(chain)
    return best


def _rest_is_optional(pattern: Pattern, step: Step) -> bool:
    place = next(index for index, item in enumerate(pattern.steps) if item is step)
    return all(item.optional for item in pattern.steps[place + 1 :])


def _consumers(chain: list[Any]) -> Iterator[Any]:
    """Yields the nodes that read a result of the chain, those of its latest node first."""
    inside = set(chain)
    for node in reversed(chain):
        for value in node.outputs:
            for use in value.uses():
                if use.node not in inside:
                    yield use.node


def _is_closed(chain: list[Any], outputs: set[Any]) -> bool:
    """Returns whether only the last node's results are seen from outside, and the chain needs nothing made from it."""
    inside = set(chain)
    for node in chain[:-1]:
        for value in node.outputs:
            if value in outputs or any(use.node not in inside for use in value.uses()):
                return False
    return all(use.node.graph is chain[0].graph for node in chain for value in node.outputs for use in value.uses())


def _replace(model: OnnxModel, pattern: Pattern, chain: list[Any]) -> None:
    import onnx_ir

    made = {value for node in chain for value in node.outputs}
    inputs = list(
        dict.fromkeys(value for node in chain for value in node.inputs if value is not None and value not in made)
    )
    last = chain[-1]
    name = _function_name(model, pattern, chain, inputs)
    fused = onnx_ir.Node(
        DOMAIN, name, inputs, num_outputs=len(last.outputs), name=f"{name}_{last.name or last.op_type}"
    )
    fused.meta["pattern"] = pattern.name
    fused.meta["chain"] = tuple(chain)
    for old, new in zip(last.outputs, fused.outputs, strict=True):
        new.name, new.shape, new.type = old.name, old.shape, old.type
    last.graph.insert_after(last, fused)
    for old, new in zip(last.outputs, fused.outputs, strict=True):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    last.graph.remove(reversed(chain), safe=True)


def _function_name(model: OnnxModel, pattern: Pattern, chain: list[Any], inputs: list[Any]) -> str:
    """Returns the function with the chain's body, made where the model has none like it."""
    import onnx_ir

    position: dict[Any, str] = {value: f"in{index}" for index, value in enumerate(inputs)}
    lines = []
    for number, node in enumerate(chain):
        for index, value in enumerate(node.outputs):
            position[value] = f"v{number}_{index}"
        attributes = sorted(f"{key}={attribute.value}" for key, attribute in node.attributes.items())
        reads = [position[value] if value is not None else "" for value in node.inputs]
        lines.append(f"{node.op_type}({','.join(reads)};{','.join(attributes)})")
    key = "\n".join(lines)
    known: dict[str, str] = model.meta.setdefault("fused_functions", {})
    if key in known:
        return known[key]
    name = f"{pattern.name}_{sum(item.startswith(pattern.name + '_') for item in known.values()) + 1}"
    known[key] = name
    _add_function(model, name, chain, inputs, onnx_ir)
    return name


def _add_function(model: OnnxModel, name: str, chain: list[Any], inputs: list[Any], onnx_ir: Any) -> None:
    copies = {value: onnx_ir.Value(name=f"in{index}") for index, value in enumerate(inputs)}
    nodes = []
    for number, node in enumerate(chain):
        outputs = [onnx_ir.Value(name=f"v{number}_{index}") for index in range(len(node.outputs))]
        reads = [copies[value] if value is not None else None for value in node.inputs]
        nodes.append(
            onnx_ir.Node(
                node.domain,
                node.op_type,
                reads,
                _copied(node.attributes.values(), onnx_ir),
                outputs=outputs,
                name=f"n{number}",
            )
        )
        copies.update(zip(node.outputs, outputs, strict=True))
    last = nodes[-1]
    versions = dict(model.graph.opset_imports)
    graph = onnx_ir.Graph([copies[value] for value in inputs], list(last.outputs), nodes=nodes, opset_imports=versions)
    function = onnx_ir.Function(DOMAIN, name, graph=graph, attributes={})
    model.functions[function.identifier()] = function
    model.graph.opset_imports[DOMAIN] = 1
    function.opset_imports[DOMAIN] = 1


def _copied(attributes: Iterable[Any], onnx_ir: Any) -> list[Any]:
    return [onnx_ir.Attr(item.name, item.type, item.value, doc_string=item.doc_string) for item in attributes]
