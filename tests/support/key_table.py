"""The table of keys in the user guide, made from the commands. ``python -m tests.support.key_table`` writes it anew."""

import os
import tempfile
from pathlib import Path

from profiler_gui.commands.command import CommandRegistry, KeyPreset
from tests.support.captures import REPOSITORY

GUIDE = REPOSITORY / "docs" / "guide.md"
BEGIN, END = "<!-- keys: written by `python -m tests.support.key_table` -->\n", "<!-- end of keys -->\n"


def key_table(commands: CommandRegistry) -> str:
    """Returns a Markdown table of every command with keys: its keys under both presets, and where they work."""
    lines = ["| command | Perfetto keys | MindStudio Insight keys | where |", "|---|---|---|---|"]
    for command in commands:
        keys = [_keys_text(command.keys_of(preset)) for preset in (KeyPreset.PERFETTO, KeyPreset.INSIGHT)]
        if any(keys):
            title = command.plain_title.removesuffix("…")
            lines.append(f"| {title} | {keys[0]} | {keys[1]} | {command.scope or 'everywhere'} |")
    return "\n".join(lines) + "\n"


def written_table() -> str:
    """Returns the table as the guide has it."""
    text = GUIDE.read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0]


def _keys_text(keys: tuple[str, ...]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _write() -> None:
    from profiler_gui.app import create_application
    from tests.support.windows import built_window

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = create_application(["cannscope"])
    with tempfile.TemporaryDirectory() as directory:
        window = built_window(application, Path(directory))
        table = key_table(window.commands)
        window.close()
    text = GUIDE.read_text(encoding="utf-8")
    GUIDE.write_text(text.replace(BEGIN + written_table() + END, BEGIN + table + END), encoding="utf-8")


if __name__ == "__main__":
    _write()
