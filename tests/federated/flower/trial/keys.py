"""The aggregators of a run; a test writes its own file over this one."""

from __future__ import annotations

#: The public keys.
KEYS: list[str] = []
#: Their files, for nodes of a simulation, whose configuration nobody can write.
FILES: list[str] = []
