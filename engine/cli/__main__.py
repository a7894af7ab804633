"""``python -m engine.cli``: the commands without a window and without Qt installed."""

import sys

from engine.cli.app import build_cli, run

if __name__ == "__main__":
    sys.exit(run(build_cli(), sys.argv[1:]))
