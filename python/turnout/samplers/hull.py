"""Compute the least concave function above points."""

from __future__ import annotations

from turnout._types import Floats


def concave(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the upper hull of points with ascending x, as a function."""
    kept: list[int] = []
    for place in range(x.size):
        while len(kept) > 1:
            first, second = kept[-2], kept[-1]
            rise = (y[second] - y[first]) * (x[place] - x[first])
            if rise > (y[place] - y[first]) * (x[second] - x[first]):
                break
            kept.pop()
        kept.append(place)
    return x[kept], y[kept]
