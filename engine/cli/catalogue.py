"""The catalogue of optimizations as commands use it."""

from engine.cli.console import Output
from engine.core.registry import Registry
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Optimization


def known_optimizations(output: Output) -> Registry[Optimization]:
    """Returns all optimizations; plug-ins that cannot be loaded are named on stderr."""
    registry = optimization_registry()
    if not output.quiet:
        for failure in registry.failures:
            output.stderr.print(str(failure))
    return registry
