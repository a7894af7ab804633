import os
import subprocess
import sys
from pathlib import Path

import pytest

from profiler_gui.__main__ import has_display, may_be_command
from tests.support.captures import REPOSITORY

TRACE = '[{"name": "A", "ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]'


def run(code: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    kept.pop("QT_QPA_PLATFORM", None)
    return subprocess.run(  # noqa: S603 - this Python, our own text
        [sys.executable, "-c", code],
        env={**kept, "CANNSCOPE_CACHE": str(tmp_path / "cache"), **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("argument", ["trace.json", "run/rank_0", "/captures", "nothing", "os.path", "C:\\\\runs"])
def test_what_is_no_command_is_a_path(argument):
    assert not may_be_command(argument)


def test_every_command_is_recognised_without_importing_it():
    from engine.cli.app import build_cli, command_names

    assert all(may_be_command(name) for name in (*command_names(build_cli()), "open", "--help", "-q"))


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", True),
        ({"QT_QPA_PLATFORM": "xcb"}, "linux", False),
        ({}, "win32", True),
        ({}, "darwin", True),
    ],
)
def test_a_display_is_looked_for_where_one_is_needed(environment, platform, expected):
    assert has_display(environment, platform) is expected


def test_without_a_display_one_line_names_the_report(tmp_path):
    code = "import sys; sys.argv[1:] = ['x.json']; from profiler_gui.__main__ import main; sys.exit(main())"
    result = run(code, tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "cannscope analyze PATH" in result.stderr


def test_the_engines_commands_run_without_importing_qt(tmp_path):
    (tmp_path / "trace.json").write_text(TRACE, encoding="utf-8")
    code = (
        "import sys; sys.argv[1:] = ['info', sys.argv[0]]\n"
        f"sys.argv[2] = {str(tmp_path / 'trace.json')!r}\n"
        "from profiler_gui.__main__ import main\n"
        "code = main()\n"
        "assert not [name for name in sys.modules if name.startswith(('PySide6', 'shiboken6'))]\n"
        "sys.exit(code)"
    )
    result = run(code, tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_built_window_has_not_imported_what_only_an_open_capture_needs(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from profiler_gui.app import build_app, create_application\n"
        "application = create_application(['cannscope'])\n"
        f"window = build_app(application, Path({str(tmp_path)!r}) / 's.ini', Path({str(tmp_path)!r}) / 'c')\n"
        "window.show(); application.processEvents(); window.close()\n"
        "names = ('pandas', 'numba', 'pyqtgraph', 'engine.analyses', 'engine.formats')\n"
        "heavy = [name for name in names if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    result = run(code, tmp_path, QT_QPA_PLATFORM="offscreen")
    assert result.returncode == 0, result.stderr
