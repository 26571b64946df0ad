"""Draw what ``gallery.rst`` shows, by its own lines: ``python docs/pictures/gallery.py``."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent


def main() -> None:
    """Run the page; the last figure before an image of the gallery is that image."""
    page = (FOLDER.parent / "gallery.rst").read_text()
    names: dict[str, Any] = {}
    for part in doctest.DocTestParser().parse(page):
        if isinstance(part, doctest.Example):
            exec(compile(part.source, "gallery.rst", "single"), names)
            continue
        for name in re.findall(r"^\.\. image:: /pictures/(gallery_\w+\.png)$", part, re.MULTILINE):
            plt.gcf().savefig(FOLDER / name, dpi=100, bbox_inches="tight")
            plt.close("all")


if __name__ == "__main__":
    main()
