"""What tests of texts share."""

from __future__ import annotations

import re

#: An absolute path: only such lines may be longer than a terminal is wide.
_PATH = re.compile(r"(^|\s)(/|[A-Z]:\\)\w")


def without_paths(text: str) -> list[str]:
    """List the lines that name no file: paths are never broken, all else is."""
    return [line for line in text.splitlines() if not _PATH.search(line)]
