"""Where the product keeps things for its user; an environment variable moves each place."""

import os
from pathlib import Path

import platformdirs

_NAME = "cannscope"


def cache_place() -> Path:
    """Returns the directory of traces already read: ``CANNSCOPE_CACHE``, or ``traces`` in the platform's cache."""
    return _named("CANNSCOPE_CACHE") or Path(platformdirs.user_cache_dir(_NAME, appauthor=False)) / "traces"


def data_place() -> Path:
    """Returns the directory of histories and logs: ``CANNSCOPE_DATA``, or the platform's for data of users."""
    return _named("CANNSCOPE_DATA") or Path(platformdirs.user_data_dir(_NAME, appauthor=False))


def simulations_place() -> Path:
    """Returns where simulated runs go: ``CANNSCOPE_SIMULATIONS``, or ``simulations`` among the user's data."""
    return _named("CANNSCOPE_SIMULATIONS") or data_place() / "simulations"


def settings_place() -> Path:
    """Returns the window's settings file: ``CANNSCOPE_SETTINGS``, or ``settings.ini`` in the platform's directory."""
    return _named("CANNSCOPE_SETTINGS") or Path(platformdirs.user_config_dir(_NAME, appauthor=False)) / "settings.ini"


def bench_history_place() -> Path:
    """Returns the file every benchmark is added to."""
    return data_place() / "bench.sqlite"


def calibration_log_place() -> Path:
    """Returns the file every score of a prediction is added to."""
    return data_place() / "calibration.jsonl"


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None
