"""Collect a reference from people themselves, under local privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.attributes import SampledAttribute
from turnout.frequency.joint import PairTables
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.oracles.unary_encoding import OptimizedUnaryEncoding
from turnout.samplers.population.draws import grouped
from turnout.samplers.tables.columns import columns_of, table_codes
from turnout.samplers.tables.frames import read_frame
from turnout.samplers.tables.reference import CollectedReference


def collect_reference(
    epsilon: float,
    columns: Any,
    data: Any,
    users: Any,
    *,
    pairs: bool = False,
    seed: int | None = None,
) -> CollectedReference:
    """Collect a reference for :class:`TableSampler` from people, under local privacy.

    Each person reports from one record, drawn at random, with the whole epsilon: the cell of one
    column, or with ``pairs`` the cells of two. The estimate is public. It costs privacy: a person
    who reports here and gives a draw afterwards spends the sum of both epsilons, as ``guarantee()``
    of the sampler says. If different people give the reference and the records, each pays once. A
    column that nobody was asked about stays uniform.

    Parameters
    ----------
    epsilon
        Privacy of a person's report here.
    columns
        What each column may hold, as for :class:`TableSampler`.
    data
        The rows of all people: a frame of pandas, polars or pyarrow.
    users
        The user of each row, as for :func:`sample_population`.
    pairs
        Whether to collect tables of all pairs of columns, for a tree of pairs. This needs at least
        three columns. It takes more people, since each table has reports from few.
    seed
        For tests and simulations only.

    Returns
    -------
    CollectedReference
        The ``reference`` of a :class:`TableSampler` with the same columns.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used. No value is shown.

    Examples
    --------
    >>> import pandas as pd
    >>> import turnout as tn
    >>> columns = {"age": (17, 91), "sex": ["f", "m"]}
    >>> others = pd.DataFrame({"age": [30, 31, 32, 60] * 500, "sex": ["f", "f", "f", "m"] * 500})
    >>> public = tn.samplers.collect_reference(1.0, columns, others, range(2000), seed=1)
    >>> sampler = tn.samplers.TableSampler(2.0, columns, reference=public)
    >>> print(sampler.fit(others.head(3)).guarantee().split(". ")[-1])
    A person who reported for it and gives a draw spends 3.0 in total.
    """
    parts = columns_of(columns)
    codes = table_codes(parts, "data", read_frame("data", data, parts)[0])
    _, places = grouped(users, len(codes))
    if pairs and len(parts) < 3:
        raise InvalidValueError(f"pairs need at least three columns, got {len(parts)}")
    _arguments.instance("pairs", pairs, bool, "True or False")
    # Which record is reported protects nobody: the report does.
    generator = np.random.default_rng(seed)
    picked = codes[[own[generator.integers(len(own))] for own in places]]
    names = tuple(part.name for part in parts)
    table = dict(zip(names, picked.T, strict=True))
    sizes = {part.name: part.cells for part in parts}
    if len(parts) == 1:
        few = parts[0].cells < 3.0 * math.exp(epsilon) + 2.0
        oracle: Any = (DirectEncoding if few else OptimizedUnaryEncoding)(epsilon, parts[0].cells)
        found = oracle.collect(picked[:, 0], seed=seed).estimate()
        shares = {names[0]: np.asarray(found.project("simplex").frequencies)}
        return CollectedReference(float(epsilon), len(places), shares, {})
    if not pairs:
        tally = SampledAttribute(epsilon, sizes).collect(table, seed=seed)
        estimates = tally._estimate_answered(tally._default_method).project("simplex")
        shares = {
            # Of few people nobody may be asked about a column, which then stays uniform.
            part.name: np.asarray(estimates[part.name].frequencies)
            if part.name in estimates
            else part.shares
            for part in parts
        }
        return CollectedReference(float(epsilon), len(places), shares, {})
    pairs_of = PairTables(epsilon, sizes)
    tallies: Any = pairs_of.collect(table, seed=seed)
    even = {part.name: part.shares for part in parts}
    tables = {
        (one, other): _shares(tallies[name].estimate().table)
        if tallies[name].received
        else np.outer(even[one], even[other])
        for name, (one, other) in pairs_of.pairs.items()
    }
    shares = {
        name: np.mean(
            [
                found.sum(axis=1 if name == pair[0] else 0)
                for pair, found in tables.items()
                if name in pair
            ],
            axis=0,
        )
        for name in names
    }
    return CollectedReference(float(epsilon), len(places), shares, tables)


def _shares(table: Any) -> Floats:
    """Make a distribution from an estimate."""
    positive = np.maximum(np.asarray(table, np.float64), 0.0)
    total = float(positive.sum())
    if not total > 0.0:
        return np.full(positive.shape, 1.0 / positive.size)
    result: Floats = positive / total
    return result
