"""The command line in processes forked from one that has imported it: a start takes no second."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any, TextIO

from turnout.cli import main

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, "turnout.cli.serve", "psycopg", "uvicorn"])


def start(words: Sequence[str]) -> tuple[ForkServerProcess, TextIO]:
    """Start ``turnout`` with these words; gives the process, and its standard error."""
    receiving, sending = os.pipe()
    process = _FORKING.Process(target=_run, args=(words, DupFd(sending)), daemon=True)
    process.start()
    os.close(sending)
    return process, os.fdopen(receiving, encoding="utf-8")


def _run(words: Sequence[str], errors: Any) -> None:
    found = errors.detach()
    os.dup2(found, 2)
    os.close(found)
    sys.argv = ["turnout", *words]
    main()
