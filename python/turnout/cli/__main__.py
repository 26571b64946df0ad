"""``python -m turnout.cli``."""

from __future__ import annotations

from turnout.cli import main

main()
