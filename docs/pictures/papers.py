"""Draw the papers' figures that ``gallery.rst`` shows: ``python docs/pictures/papers.py``.

They are those of ``turnout reproduce``, the quick form, with fewer pixels and colours.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from turnout_reproduce import chosen, reproduce

FOLDER = Path(__file__).parent
FIGURES = (
    "sampling/figure-2",
    "sampling/figure-3",
    "fair/figure-1",
    "fair/figure-3",
    "fair/figure-4",
    "private-sampling/mixture",
    "private-sampling/theorem-4",
    "participation/figure-1",
    "participation/figure-5",
    "participation/figure-6",
)
WIDEST = 1100


def main() -> None:
    """Run the experiments and keep small copies of their pictures."""
    with tempfile.TemporaryDirectory() as folder:
        reproduce(chosen(FIGURES), folder)
        for name in FIGURES:
            picture = Image.open(Path(folder, f"{name}.png")).convert("RGB")
            picture.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
            small = picture.quantize(96, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            small.save(FOLDER / f"papers_{name.replace('/', '_')}.png", optimize=True)


if __name__ == "__main__":
    main()
