"""Where the product writes what a user keeps, moved into a directory of the tests."""

from pathlib import Path

import pytest

# Worker processes and commands started by a test inherit the environment, so it is what redirects them too.
PLACES = {
    "CANNSCOPE_CACHE": "cache",
    "CANNSCOPE_SETTINGS": "settings.ini",
    "CANNSCOPE_SIMULATIONS": "simulations",
    "CANNSCOPE_DATA": "data",
}


def move_user_places(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Points every place the product writes to by itself into ``directory``, which stays empty until it does."""
    for variable, name in PLACES.items():
        patch.setenv(variable, str(directory / name))
