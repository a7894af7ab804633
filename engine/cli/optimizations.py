"""``cannscope optimizations``: what can be switched on, and how that is done for real."""

from typing import Annotated

import typer

from engine.cli.catalogue import known_optimizations
from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.errors import ScenarioError
from engine.optimizations.catalogue import in_order
from engine.report.optimizations import catalogue_document, catalogue_text, optimization_text
from engine.workloads.scenario_keys import nearest


def optimizations(
    identifier: Annotated[str | None, typer.Argument(metavar="[ID]", help="One of them, with everything.")] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Everything that can be switched on: parameters, real switches with versions, conflicts, risk, how to verify.

    Example: cannscope optimizations memory.expandable_segments
    """
    output = Output(as_json, quiet, verbose)
    registry = known_optimizations(output)
    catalogue = in_order(registry)
    shown = catalogue
    if identifier is not None:
        if identifier not in registry:
            raise ScenarioError(
                f"{identifier}: not an optimization; {nearest(identifier, [item.id for item in catalogue])}"
            )
        shown = (registry[identifier],)
    if as_json:
        output.document(catalogue_document(shown, catalogue))
    elif identifier is not None:
        output.stdout.print(optimization_text(shown[0], catalogue))
    else:
        output.stdout.print(catalogue_text(shown))
