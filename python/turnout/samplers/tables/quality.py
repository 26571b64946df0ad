"""How like a real table a table of drawn records is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom

from turnout._drawing import new_axes
from turnout._extras import require
from turnout._tables import Tabular
from turnout._types import Axes, Floats, Integers
from turnout.errors import InvalidValueError
from turnout.samplers.tables.columns import Column, columns_of, table_codes
from turnout.samplers.tables.frames import read_frame

#: More records are not looked at where each costs time: models, and distances among real records.
_MOST: Final = 5_000

#: So many trees, each leaf with so many records at least.
_TREES, _LEAF = 50, 5


@dataclass(frozen=True, eq=False, repr=False)
class TableQuality(Tabular):
    """How like a real table drawn records are: made by :func:`turnout.samplers.quality`.

    As a table it has a row for each column and each pair of columns.

    Attributes
    ----------
    total_variation
        The total variation distance of the shares of cells, by the names of one or two columns: 0
        for the same shares, 1 if no cell is in both.
    by_chance
        The mean of that distance if as many records were drawn from the real table itself.
    coverage
        The share of the real records whose cell, or pair of cells, occurs among the drawn ones.
    nearest
        For each drawn record the distance to the nearest real one, float64: the mean over columns,
        where 0 is the same cell, 1 another label or the other end of an ordered column.
    nearest_of_real
        The same for real records (at most 5,000) and the nearest other real record.
    models
        By the name of each column how often a model foretells it in real records from the other
        columns: ``"drawn"`` trained on the drawn records, ``"real"`` on as many other real ones,
        and ``"constant"`` if the most frequent cell of the drawn records is always said.
    """

    total_variation: dict[tuple[str, ...], float]
    by_chance: dict[tuple[str, ...], float]
    coverage: dict[tuple[str, ...], float]
    nearest: Floats
    nearest_of_real: Floats
    models: dict[str, dict[str, float]]

    _columns = ("columns", "total_variation", "by_chance", "coverage")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each column and each pair of columns.

        Returns
        -------
        list of dict
            With ``columns`` (names joined by commas), ``total_variation``, ``by_chance`` and
            ``coverage``.
        """
        return [
            {
                "columns": ", ".join(names),
                "total_variation": distance,
                "by_chance": self.by_chance[names],
                "coverage": self.coverage[names],
            }
            for names, distance in self.total_variation.items()
        ]

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the total variation distances: of columns on the diagonal, of pairs beside it.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        names = [key[0] for key in self.total_variation if len(key) == 1]
        size = 2.5 + 0.75 * len(names)
        axes = new_axes(ax, width=size + 1.0, height=size)
        places = {name: place for place, name in enumerate(names)}
        matrix = np.zeros((len(names), len(names)))
        for key, distance in self.total_variation.items():
            one, other = places[key[0]], places[key[-1]]
            matrix[one, other] = matrix[other, one] = distance
        image = axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=1.0)
        for (row, column), distance in np.ndenumerate(matrix):
            colour = "white" if distance > 0.6 else "black"
            axes.text(column, row, f"{distance:.2f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("column")
        axes.set_ylabel("column")
        axes.set_title(f"{len(self.nearest):,} drawn records beside the real ones")
        axes.figure.colorbar(image, ax=axes, label="total variation distance")
        return axes

    def __repr__(self) -> str:
        of_columns = [value for key, value in self.total_variation.items() if len(key) == 1]
        of_pairs = [value for key, value in self.total_variation.items() if len(key) == 2]
        pairs = f", of pairs {np.mean(of_pairs):.3f}" if of_pairs else ""
        return (
            f"<TableQuality: mean total variation of columns {np.mean(of_columns):.3f}{pairs}, "
            f"{len(self.nearest):,} drawn records>"
        )


def quality(real: Any, drawn: Any, columns: Any) -> TableQuality:
    """Compare drawn records with the real table: for whoever holds it, for it protects nobody.

    Parameters
    ----------
    real, drawn
        The table and the records that were drawn from it: frames of pandas, polars or pyarrow.
    columns
        What each column may hold, as of :class:`TableSampler`. Values are compared by their cells.

    Returns
    -------
    TableQuality
        Distances of columns and pairs, coverage, distances to the nearest record, and how well
        models do that were trained on the drawn records.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a table is no frame with these columns, or a value cannot be in its column. No value is
        shown.
    MissingExtraError
        If narwhals, pyarrow or scikit-learn is not installed.

    Notes
    -----
    The numbers are exact functions of the real table: they are as private as the table itself.
    Records of people who have many count as often.

    Models are random forests of the cells. They are trained on 5,000 records at most, and tried on
    the half of the real records that none was trained on.

    Examples
    --------
    >>> import pandas as pd
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "sex": ["f", "f", "m", "m"] * 25})
    >>> drawn = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "sex": ["f", "m", "f", "m"] * 5})
    >>> found = quality(real, drawn, {"age": (17, 91), "sex": ["f", "m"]})
    >>> found.total_variation
    {('age',): 0.0, ('sex',): 0.0, ('age', 'sex'): 0.5}
    >>> found.to_pandas().columns.tolist()
    ['columns', 'total_variation', 'by_chance', 'coverage']
    """
    parts = columns_of(columns)
    codes = {
        name: table_codes(parts, name, read_frame(name, frame, parts)[0])
        for name, frame in (("real", real), ("drawn", drawn))
    }
    own, given = codes["real"], codes["drawn"]
    if len(own) < 2:
        raise InvalidValueError("real must have at least two records, got one")
    compared = {}
    places = range(len(parts))
    for chosen in (*((place,) for place in places), *itertools.combinations(places, 2)):
        names = tuple(parts[place].name for place in chosen)
        compared[names] = _compared(parts, chosen, own, given)
    points, others = _points(parts, own), _points(parts, given)
    return TableQuality(
        {names: found[0] for names, found in compared.items()},
        {names: found[1] for names, found in compared.items()},
        {names: found[2] for names, found in compared.items()},
        _nearest(np.unique(points, axis=0), others, 1) / len(parts),
        _among(points) / len(parts),
        _models(parts, own, given),
    )


def _compared(
    parts: Sequence[Column], chosen: tuple[int, ...], own: Integers, given: Integers
) -> tuple[float, float, float]:
    """Give the total variation distance in some columns, its mean by chance, and the coverage."""
    shape = tuple(parts[place].cells for place in chosen)
    cells = [
        np.ravel_multi_index(tuple(codes[:, place] for place in chosen), shape)
        for codes in (own, given)
    ]
    # Cells that nobody has count nothing: pairs can have many of them.
    held, index = np.unique(np.concatenate(cells), return_inverse=True)
    counts = [
        np.bincount(part, minlength=held.size) for part in (index[: len(own)], index[len(own) :])
    ]
    shares, drawn = counts[0] / len(own), counts[1] / len(given)
    # The mean absolute deviation of a binomial count, after De Moivre.
    number = len(given)
    most = np.floor(number * shares) + 1.0
    chance = 2.0 * most * (1.0 - shares) * binom.pmf(most, number, shares) / number
    return (
        float(np.abs(shares - drawn).sum() / 2.0),
        float(chance.sum() / 2.0),
        float(shares[counts[1] > 0].sum()),
    )


def _points(parts: Sequence[Column], codes: Integers) -> Floats:
    """Place records so that the distance in each column is at most 1, by sums of differences."""
    found: list[Floats] = []
    for part, own in zip(parts, codes.T, strict=True):
        if not part.ordered:
            found.append(np.eye(part.cells)[own] / 2.0)
            continue
        gone = own == part.values
        along = own / max(part.values - 1, 1)
        # What is missing is between one half and 1 from every value.
        found.append(np.column_stack([np.where(gone, 0.5, along), gone / 2.0]))
    return np.concatenate(found, axis=1)


def _among(points: Floats) -> Floats:
    """Give the distances of records, at most so many, to the nearest other one."""
    some = np.linspace(0, len(points) - 1, min(len(points), _MOST)).astype(np.int64)
    different, index, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    index = np.ravel(index)[some]
    if len(different) == 1:
        return np.zeros(len(some))
    apart = _nearest(different, different[index], 2)
    result: Floats = np.where(counts[index] > 1, 0.0, apart)
    return result


def _nearest(points: Floats, others: Floats, rank: int) -> Floats:
    """Give for each of others the distance to the nearest point, or to the second nearest."""
    found = np.asarray(cKDTree(points).query(others, k=[rank], p=1)[0], np.float64)
    return found.reshape(len(others))


def _models(parts: Sequence[Column], own: Integers, given: Integers) -> dict[str, dict[str, float]]:
    """Train models on drawn and on real records, and try both on other real ones."""
    if len(parts) < 2:
        return {}
    forest = require("sklearn.ensemble", "samplers").RandomForestClassifier
    generator = np.random.default_rng(0)
    own, given = generator.permutation(own), generator.permutation(given)[:_MOST]
    half = len(own) // 2
    test = own[half:][:_MOST]
    found = {}
    for place, part in enumerate(parts):
        scores = {}
        for name, records in (("drawn", given), ("real", own[:half][: len(given)])):
            model = forest(_TREES, min_samples_leaf=_LEAF, random_state=0)
            model.fit(np.delete(records, place, axis=1), records[:, place])
            scores[name] = float(model.score(np.delete(test, place, axis=1), test[:, place]))
        usual = np.bincount(given[:, place]).argmax()
        found[part.name] = {**scores, "constant": float((test[:, place] == usual).mean())}
    return found
