"""The command line: commands in one list, errors turned into exit codes in one place."""

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from engine.cli.advise import advise
from engine.cli.analyze import analyze
from engine.cli.atc import atc
from engine.cli.bench import bench
from engine.cli.compare import compare
from engine.cli.console import EXIT_CANCELLED, EXIT_UNUSABLE_INPUT
from engine.cli.convert import convert
from engine.cli.demo import ShowWindow, demo_command
from engine.cli.devices import devices
from engine.cli.fidelity import fidelity
from engine.cli.info import info
from engine.cli.models import models
from engine.cli.optimizations import optimizations
from engine.cli.quantize import quantize
from engine.cli.replay import replay
from engine.cli.simulate import simulate
from engine.cli.tune import tune
from engine.cli.twin import twin
from engine.cli.verify import verify
from engine.cli.whatif import whatif
from engine.core.errors import EngineError, OperationCancelled


def build_cli(show_window: ShowWindow | None = None) -> typer.Typer:
    """Returns the engine's commands as a typer application others may add to.

    Args:
        show_window: What opens the window, for commands that end in it; None where there is none.
    """
    cli = typer.Typer(
        name="cannscope",
        help="Profiler and trace analysis for AI jobs on Ascend NPUs.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    cli.callback()(_keep_commands_named)
    commands = (
        info,
        analyze,
        advise,
        atc,
        bench,
        compare,
        convert,
        devices,
        models,
        optimizations,
        fidelity,
        quantize,
        replay,
        simulate,
        whatif,
        tune,
        verify,
        twin,
        demo_command(show_window),
    )
    for command in commands:
        cli.command()(command)
    return cli


def _keep_commands_named() -> None:
    """Makes typer keep sub-commands even when there is only one."""


def command_names(cli: typer.Typer) -> frozenset[str]:
    """Returns the names a first argument may have to be a command."""
    return frozenset(item.name or getattr(item.callback, "__name__", "") for item in cli.registered_commands)


def run(cli: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit code of CLI.md: 0, 1, 2 (one line on stderr) or 130."""
    try:
        result = get_command(cli)(list(arguments), prog_name="cannscope", standalone_mode=False)
    except (OperationCancelled, KeyboardInterrupt, typer.Abort):
        sys.stderr.write("cancelled\n")
        return EXIT_CANCELLED
    except TyperException as error:
        sys.stderr.write(f"cannscope: {error.format_message()} Try: cannscope --help\n")
        return EXIT_UNUSABLE_INPUT
    except EngineError as error:
        sys.stderr.write(f"cannscope: {error}\n")
        return EXIT_UNUSABLE_INPUT
    except BrokenPipeError:
        return 0
    except OSError as error:
        sys.stderr.write(f"cannscope: {error.filename or 'the input'}: {error.strerror or error}; check the path\n")
        return EXIT_UNUSABLE_INPUT
    return result if isinstance(result, int) else 0
