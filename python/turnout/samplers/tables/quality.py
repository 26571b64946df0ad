"""Measure how similar a table of drawn records is to a real table."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._drawing import new_axes
from turnout._extras import require
from turnout._tables import Tabular
from turnout._types import Axes, Floats, Integers
from turnout.errors import InvalidValueError
from turnout.samplers.population.draws import PopulationDraws
from turnout.samplers.tables.attack import guesses
from turnout.samplers.tables.columns import Column, columns_of, table_codes
from turnout.samplers.tables.frames import read_frame
from turnout.samplers.tables.sampler import TableSampler

#: More records are not looked at where each costs time: models, and distances among real records.
_MOST: Final = 5_000

#: So many trees, each leaf with so many records at least.
_TREES, _LEAF = 50, 5


@dataclass(frozen=True, eq=False, repr=False)
class TableQuality(Tabular):
    """The similarity of drawn records to a real table, made by :func:`turnout.samplers.quality`.

    As a table, it has one row for each column and each pair of columns.

    Attributes
    ----------
    total_variation
        The total variation distance of the shares of cells, by the names of one or two columns: 0
        for the same shares, 1 if no cell is in both.
    by_chance
        The mean that this distance would have if as many records were drawn from the real table
        itself.
    coverage
        The share of the real records whose cell, or pair of cells, occurs among the drawn ones.
    nearest
        For each drawn record, the distance to the nearest real one, float64. It is the mean over
        columns, where 0 is the same cell, and 1 another label or the other end of an ordered
        column.
    nearest_of_real
        The same for real records (at most 5,000) and the nearest other real record.
    models
        For each column, by its name, how often a model predicts it in real records from the other
        columns. ``"drawn"`` is trained on the drawn records, ``"real"`` on as many other real ones,
        and ``"constant"`` always predicts the most frequent cell of the drawn records.
    shares
        For each column, by its name, the share of each of its cells, by the cell's name: among the
        real records, and among the drawn ones.
    attack
        How well an attacker tells whose record was drawn; None if that is not measured. The
        attacker is given a record, and the real records of two people: the person that it was drawn
        from, and one other. The attacker names the person under whose law the record is more
        likely. ``"right"`` is how often that is true, ``"standard_error"`` its standard error,
        ``"people"`` the number of people, and ``"bound"`` the rate that no attacker exceeds:
        e^epsilon / (1 + e^epsilon).
    """

    total_variation: dict[tuple[str, ...], float]
    by_chance: dict[tuple[str, ...], float]
    coverage: dict[tuple[str, ...], float]
    nearest: Floats
    nearest_of_real: Floats
    models: dict[str, dict[str, float]]
    shares: dict[str, dict[str, tuple[float, float]]]
    attack: dict[str, float] | None = None

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
        """Plot the total variation distances: columns on the diagonal, pairs beside it.

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


def quality(real: Any, drawn: Any, columns: Any = None, *, users: Any = None) -> TableQuality:
    """Compare drawn records with the real table; only for its holder, as it protects nobody.

    Parameters
    ----------
    real
        The table: a frame of pandas, polars or pyarrow.
    drawn
        The records that were drawn from it: a frame, or the result of :func:`sample_population`.
    columns
        What each column may hold, as for :class:`TableSampler`. Values are compared by their cells.
        You need not give it for a result of :func:`sample_population`.
    users
        The user of each row of ``real``, as for :func:`sample_population`. If you give it together
        with a result of that function, the attack is measured too: how well an attacker tells whose
        record was drawn.

    Returns
    -------
    TableQuality
        Distances of columns and pairs, coverage, distances to the nearest record, and how well
        models trained on the drawn records do.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a table is not a frame with these columns, a value cannot be in its column, or
        ``columns`` or ``users`` does not fit the records. No value is shown.
    MissingExtraError
        If narwhals, pyarrow or scikit-learn is not installed.

    Notes
    -----
    The numbers are exact functions of the real table: keep them as private as the table itself. A
    person with many records counts once for each of them.

    Models are random forests of the cells. They are trained on 5,000 records at most, and tested on
    the half of the real records that no model was trained on. The attacker is tried on 200 people
    at most, each against all others. The attack is by the likelihood ratio of the two laws: no test
    is better for two known tables (Neyman and Pearson). For ``"resampling"``, the attacker uses the
    law for many proposals.

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
    population = drawn if isinstance(drawn, PopulationDraws) else None
    sampler = None if population is None else population.sampler
    if population is not None:
        drawn = population.draws
        if not isinstance(sampler, TableSampler):
            raise _arguments.mistyped("drawn must be records of a TableSampler", sampler)
        columns = sampler.columns if columns is None else columns
    if users is not None and population is None:
        raise InvalidValueError(
            "users must be given with what sample_population gave: a frame does not say how its "
            "records were drawn"
        )
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
        {
            part.name: _shares(part, *columns)
            for part, *columns in zip(parts, own.T, given.T, strict=True)
        },
        None if population is None or users is None else guesses(population, own, given, users),
    )


def _shares(part: Column, own: Integers, given: Integers) -> dict[str, tuple[float, float]]:
    """Return the share of each cell among the real and among the drawn records."""
    real, drawn = (np.bincount(codes, minlength=part.cells) / len(codes) for codes in (own, given))
    return dict(zip(part.names, zip(real.tolist(), drawn.tolist(), strict=True), strict=True))


def _compared(
    parts: Sequence[Column], chosen: tuple[int, ...], own: Integers, given: Integers
) -> tuple[float, float, float]:
    """Return the total variation distance in some columns, its mean by chance, and the coverage."""
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
    from scipy import stats  # noqa: PLC0415 (slow)

    # The mean absolute deviation of a binomial count, after De Moivre.
    number = len(given)
    most = np.floor(number * shares) + 1.0
    chance = 2.0 * most * (1.0 - shares) * stats.binom.pmf(most, number, shares) / number
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
    """Return the distances from records, a limited number of them, to the nearest other record."""
    some = np.linspace(0, len(points) - 1, min(len(points), _MOST)).astype(np.int64)
    different, index, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    index = np.ravel(index)[some]
    if len(different) == 1:
        return np.zeros(len(some))
    apart = _nearest(different, different[index], 2)
    result: Floats = np.where(counts[index] > 1, 0.0, apart)
    return result


def _nearest(points: Floats, others: Floats, rank: int) -> Floats:
    """Return the distance from each of others to the nearest point, or to the second nearest."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 (slow)

    found = np.asarray(cKDTree(points).query(others, k=[rank], p=1)[0], np.float64)
    return found.reshape(len(others))


def _models(parts: Sequence[Column], own: Integers, given: Integers) -> dict[str, dict[str, float]]:
    """Train models on drawn and on real records, and test both on other real records."""
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
            with warnings.catch_warnings():
                # Cells are classes, however many there are of few records.
                warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
                model.fit(np.delete(records, place, axis=1), records[:, place])
            scores[name] = float(model.score(np.delete(test, place, axis=1), test[:, place]))
        usual = np.bincount(given[:, place]).argmax()
        found[part.name] = {**scores, "constant": float((test[:, place] == usual).mean())}
    return found
