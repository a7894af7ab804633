"""What plug-ins add to, as commands use it."""

from engine.cli.console import Output
from engine.core.registry import Item, Registry
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Optimization


def known_optimizations(output: Output) -> Registry[Optimization]:
    """Returns all optimizations; plug-ins that cannot be loaded are named on stderr."""
    return with_failures_named(optimization_registry(), output)


def with_failures_named(registry: Registry[Item], output: Output) -> Registry[Item]:
    """Returns a registry after naming on stderr the plug-ins that could not be loaded into it."""
    if not output.quiet:
        for failure in registry.failures:
            output.stderr.print(str(failure))
    return registry
