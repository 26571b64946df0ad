"""How far drawn records are from the real ones, in columns and in pairs, at equal epsilon.

Rows of real tables are grouped into people who are alike inside, and each person gives one record,
or one report of one record. What is compared is what a reader has: the records, or the estimates.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from report import Figures, Row

Codes = npt.NDArray[np.int64]
Shares = list[npt.NDArray[np.float64]]

EPSILONS = (1.0, 2.0, 4.0)
#: Repeats of each way, and people of a table at most.
REPEATS, PEOPLE = 3, 150

HEADINGS = ("table", "epsilon", "sampler", "of columns", "of pairs", "against turnout")
NOTES = [
    "Mean total variation distance to the real rows, of single columns and of pairs of columns, "
    f"over {REPEATS} repeats, with its standard error.",
    f"There are at most {PEOPLE} people, who are alike. Each has 40 rows (20 in the table of "
    "statsmodels).",
    "TableSampler: the default, which knows only the columns of the table. With public rows: its "
    "reference is a tenth of the table, which holds no person's row.",
    "choose_sampler, randomized response: samplers of values, for all combinations of cells.",
    "SplitBudget reports each column of a random row with an equal part of epsilon. Its estimates "
    "are projected onto the simplex, and pairs are products of columns. They are not records.",
    "Nursery lists nearly all combinations of answers once, so its columns are uniform. A uniform "
    "guess is therefore as near as chance allows.",
    "against turnout: smaller, equal (within three standard errors) or larger than TableSampler "
    "without public rows, in columns and in pairs.",
]


def tables() -> tuple[dict[str, tuple[Codes, int]], dict[str, str]]:
    """Return the codes of each table and the rows of a person, and which tables are missing."""
    found: dict[str, tuple[Codes, int]] = {}
    missing: dict[str, str] = {}
    for name, load, rows in (("Adult", adult, 40), ("Nursery", nursery, 40), ("fair", fair, 20)):
        try:
            found[name] = load(), rows
        except (ImportError, OSError, KeyError) as error:
            missing[name] = f"{type(error).__name__}: {error}"
    return found, missing


def adult() -> Codes:
    """Return age, work, education, marital status, sex and hours of Adult (UCI)."""
    rows = _rows("adult.data.gz", ", ")
    age = (np.array([int(row[0]) for row in rows]) - 17) // 10
    hours = (np.array([int(row[12]) for row in rows]) - 1) // 14
    labels = (_codes([row[place] for row in rows]) for place in (1, 3, 5, 9))
    return np.stack([age, *labels, hours], axis=1)


def nursery() -> Codes:
    """Return the first six columns of Nursery (UCI)."""
    rows = _rows("nursery.data.gz", ",")
    return np.stack([_codes([row[place] for row in rows]) for place in range(6)], axis=1)


def fair() -> Codes:
    """Return six columns of the survey that statsmodels ships."""
    data = importlib.import_module("statsmodels.api").datasets.fair.load_pandas().data
    names = ("rate_marriage", "age", "yrs_married", "children", "religious", "educ")
    return np.stack([_codes(data[name].tolist()) for name in names], axis=1)


def _rows(name: str, separator: str) -> list[list[str]]:
    path = Path(os.environ["TURNOUT_DATA"], name)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter=separator[0], skipinitialspace=True)
        return [row for row in lines if row]


def _codes(values: list[Any]) -> Codes:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def measure(
    turnout: ModuleType | None, quick: bool, on_progress: Callable[[str], object]
) -> Figures:
    """Return the table of all data sets."""
    rows: list[Row] = []
    found, missing = tables()
    for name, (codes, size) in found.items():
        if turnout is None:
            continue
        people, public = _people(codes, size)
        real = np.concatenate(people)
        for epsilon in EPSILONS:
            on_progress(f"records of {name}, epsilon {epsilon:g}")
            errors: dict[str, list[tuple[float, float]]] = {}
            for seed in range(1 if quick else REPEATS):
                cells = codes.max(axis=0) + 1
                for way, given in _ways(turnout, epsilon, people, public, cells, seed=seed).items():
                    errors.setdefault(way, []).append(_apart(given, real, codes))
            rows += _told(name, epsilon, errors)
    notes = [*NOTES, *(f"{name}: {why}" for name, why in missing.items())]
    return Figures("records", "Records of people beside the real ones", HEADINGS, rows, notes)


def _people(codes: Codes, size: int) -> tuple[list[Codes], Codes]:
    """Group rows into people who are alike inside; a tenth of all rows is public."""
    generator = np.random.default_rng(5)
    order = generator.permutation(len(codes))
    public, rest = codes[order[: len(codes) // 10]], codes[order[len(codes) // 10 :]]
    rest = rest[np.lexsort(rest.T[[2, 0, 3]])]
    groups = rest[: len(rest) // size * size].reshape(-1, size, codes.shape[1])
    chosen = generator.permutation(len(groups))[:PEOPLE]
    return [groups[place] for place in chosen], public


def _ways(
    turnout: Any, epsilon: float, people: list[Codes], public: Codes, cells: Codes, *, seed: int
) -> dict[str, Codes | tuple[Shares, Shares]]:
    """Return the records of each way, or its shares of columns and of pairs."""
    samplers = turnout.samplers
    names = [f"c{place}" for place in range(len(cells))]
    columns = {name: list(range(count)) for name, count in zip(names, cells.tolist(), strict=True)}
    pa = importlib.import_module("pyarrow")
    rows = np.concatenate(people)
    users = np.repeat(np.arange(len(people)), [len(own) for own in people])

    def frame(of: Codes) -> Any:
        return pa.table(dict(zip(names, of.T, strict=True)))

    def drawn(reference: Any) -> Codes:
        sampler = samplers.TableSampler(epsilon, columns, reference=reference)
        found = samplers.sample_population(sampler, frame(rows), users, seed=seed).draws
        return np.stack([found[name].to_numpy() for name in names], axis=1)

    size = int(np.prod(cells))
    combined = np.ravel_multi_index(tuple(rows.T), tuple(cells))
    plain = {
        "choose_sampler": samplers.choose_sampler(epsilon, size),
        "randomized response": samplers.RandomizedResponseSampler(epsilon, size),
    }
    found: dict[str, Codes | tuple[Shares, Shares]] = {
        "TableSampler": drawn(None),
        "TableSampler, public rows": drawn(frame(public)),
    }
    for name, sampler in plain.items():
        places = samplers.sample_population(sampler, combined, users, seed=seed).draws
        found[name] = np.stack(np.unravel_index(places.astype(np.int64), tuple(cells)), axis=1)
    generator = np.random.default_rng(seed)
    picked = np.stack([own[generator.integers(len(own))] for own in people])
    split = turnout.SplitBudget(epsilon, dict(zip(names, cells.tolist(), strict=True)))
    estimates = split.collect(dict(zip(names, picked.T, strict=True)), seed=seed).estimate()
    single = [np.asarray(estimates[name].project("simplex").frequencies) for name in names]
    pairs = [np.outer(one, other).ravel() for one, other in itertools.combinations(single, 2)]
    found["SplitBudget, estimates"] = single, pairs
    return found


def _shares(rows: Codes, codes: Codes) -> tuple[Shares, Shares]:
    cells = codes.max(axis=0) + 1
    places = range(len(cells))
    single = [np.bincount(rows[:, place], minlength=cells[place]) / len(rows) for place in places]
    pairs = [
        np.bincount(
            rows[:, one] * cells[other] + rows[:, other], minlength=cells[one] * cells[other]
        )
        / len(rows)
        for one, other in itertools.combinations(places, 2)
    ]
    return single, pairs


def _apart(given: Codes | tuple[Shares, Shares], real: Codes, codes: Codes) -> tuple[float, float]:
    """Return the mean total variation distances of columns and of pairs."""
    found = given if isinstance(given, tuple) else _shares(given, codes)
    single, pairs = (
        float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(one, other, strict=True)]))
        for one, other in zip(found, _shares(real, codes), strict=True)
    )
    return single, pairs


def _told(name: str, epsilon: float, errors: dict[str, list[tuple[float, float]]]) -> list[Row]:
    own = np.array(errors["TableSampler"])
    rows = []
    for way, each in errors.items():
        found = np.array(each)
        mean, error = found.mean(axis=0), _error(found)
        verdict = "-"
        if way != "TableSampler":
            apart, sure = mean - own.mean(axis=0), 3.0 * np.hypot(error, _error(own))
            words = [
                "equal" if abs(a) <= s else "larger" if a > 0 else "smaller"
                for a, s in zip(apart, sure, strict=True)
            ]
            verdict = words[0] if words[0] == words[1] else f"{words[0]}, {words[1]}"
        cells = (
            name,
            f"{epsilon:g}",
            way,
            *(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)),
            verdict,
        )
        raw = {"verdict": verdict, "of_columns": float(mean[0]), "of_pairs": float(mean[1])}
        rows.append(Row(cells, "", raw))
    return rows


def _error(found: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(found) < 2:
        return np.zeros(2)
    result: npt.NDArray[np.float64] = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return result
