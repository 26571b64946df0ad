"""``python -m turnout``."""

from __future__ import annotations

from turnout.cli import main

main()
