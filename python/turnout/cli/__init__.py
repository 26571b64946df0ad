"""The command line, ``turnout``: plan, randomize, tally, estimate, account, and more.

The commands need the extra ``cli`` (typer, rich, pyarrow, matplotlib); :func:`main` says so in one
line when it is not there.
"""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["main"]

_NEEDED = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line on ``sys.argv`` and exit with its code.

    Exit codes: 0 fine, 1 refused (one line on standard error says why), 2 wrong usage.

    Examples
    --------
    ::

        turnout randomize people.csv --column answer --epsilon 1 -o reports.parquet
        turnout tally reports.parquet -o tally.bin
        turnout estimate tally.bin
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        sys.stderr.write(f"error: the command line needs {names}: pip install 'turnout[cli]'\n")
        sys.exit(1)
    from turnout.cli.app import run  # noqa: PLC0415 (needs what was just checked)

    run()
