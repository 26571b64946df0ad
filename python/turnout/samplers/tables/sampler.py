"""Draw one private record of a person's table, with columns of several types."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_up
from turnout._seeds import derived
from turnout._types import Floats, Integers, Unsigned
from turnout.errors import InvalidValueError
from turnout.samplers.base import RatioSampler
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.drawing import automatic_proposals
from turnout.samplers.finite_law import UNIT, FiniteLaw, base_of_points
from turnout.samplers.mollifier import Projection
from turnout.samplers.tables.columns import Column, columns_of, table_codes
from turnout.samplers.tables.estimate import CellEstimate
from turnout.samplers.tables.frames import frame_of, read_frame
from turnout.samplers.tables.nearness import MANY, distances
from turnout.samplers.tables.reference import CellReference, CollectedReference

#: All combinations of so few cells are weighed, and one of them is drawn.
_ENUMERATED: Final = 2**12

#: The weight of a proposal under the reference, as in the core.
_PROPOSAL: Final = 2**32


@dataclass(eq=False, repr=False)
class TableSampler(RatioSampler):
    """A sampler of records of a person's table: numbers, labels, booleans, dates, missing values.

    ``fit`` takes a frame of one person's records; ``sample`` returns a frame with one record. The
    draw is epsilon-locally differentially private for *all* records of the person together: no draw
    is more than e^epsilon times as likely under one set of records as under another, however many
    records each has.

    Each column is cut into public cells: a cell for each label, bins of numbers and dates, and one
    cell for missing values. The law over combinations of cells stays within a band around a public
    reference; within a cell the value is drawn evenly.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    columns
        What each column may hold. It is public and must not be taken from a person's data:

        ``(17, 91)``
            whole numbers within these bounds; ``(0.0, 1.0)`` real numbers, two ``datetime.date``
            days, two ``datetime.datetime`` times in whole seconds, without a time zone;
        ``["f", "m"]``
            labels: texts or whole numbers;
        ``bool``
            true or false;
        a dictionary
            with ``"bounds"`` and perhaps ``"bins"`` (16 cells, or the number that is given), or
            with ``"labels"`` and perhaps ``"ordered": True`` (neighbours are like each other); and
            with ``"missing": True`` if a value may be missing.
    reference
        A public table with the same columns, as a frame. The reference is then a tree of pairs of
        its columns, in which everything has a small uniform share. Or what people reported under
        local privacy, by :func:`collect_reference`; this costs the people who reported. Uniform if
        None. It must not be made from the people's data in any other way.
    records
        About how many records a person has, if that is publicly known. It matters if there are few
        combinations of cells and no reference. For few records, the law of :class:`MinimaxSampler`
        may then be closer, as :func:`recommend` computes.

    Attributes
    ----------
    method_
        How a draw is made: ``"minimax"`` (all combinations of cells are weighed, and the worst case
        is the least possible), ``"mollifier"`` (all combinations are weighed), or ``"resampling"``
        (one of many proposals from the reference).
    certificate_
        A proven bound of ``|log Q/Q0|`` for the law Q of a draw and the reference Q0.
    budget_
        The budget that pays for draws if you give no other; it allows one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the records cannot be used. A value that is beyond the
        bounds, or is not one of the labels, is refused.
    MissingExtraError
        From ``fit``, if narwhals or pyarrow is not installed.

    Notes
    -----
    All combinations are weighed if there are at most 4,096. Otherwise a fixed number of proposals
    is drawn from the reference, and the proposals know nothing of the records. Integer weights
    decide which proposal is returned. The probabilities of this choice differ by a factor of at
    most e^epsilon between any two people, exactly, even given the proposals. So the guarantee does
    not depend on the density estimate.

    The columns of the draw have the types of ``columns``, and not those of the person's frame,
    which may reveal whether anything is missing there.

    Examples
    --------
    >>> import pandas as pd
    >>> mine = pd.DataFrame({"age": [34, 35], "sex": ["f", "f"], "hours": [38.5, None]})
    >>> columns = {
    ...     "age": (17, 91),
    ...     "sex": ["f", "m"],
    ...     "hours": {"bounds": (0.0, 100.0), "missing": True},
    ... }
    >>> sampler = TableSampler(2.0, columns).fit(mine)
    >>> drawn = sampler.sample(1)
    >>> type(drawn).__name__, list(drawn.columns), len(drawn)
    ('DataFrame', ['age', 'sex', 'hours'], 1)
    >>> sampler.method_, sampler.realized_epsilon <= 2.0
    ('mollifier', True)
    """

    epsilon: float = 1.0
    columns: Any = None
    _: KW_ONLY
    reference: Any = None
    records: int | None = None

    _known: _Public | None = field(init=False, default=None)

    method_: str = field(init=False)
    _columns_: tuple[Column, ...] = field(init=False)
    _weights: Unsigned = field(init=False)

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self._check_fitted()
        return self._certificate

    def sample(
        self, n_samples: int = 1, *, budget: PrivacyBudget | None = None, seed: int | None = None
    ) -> Any:
        """Draw private records; each costs epsilon.

        Parameters
        ----------
        n_samples, budget, seed
            As for every sampler: see :meth:`PrivateSampler.sample`.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The draws, one per row, in a frame of the library that the records came from.

        Raises
        ------
        BudgetExceededError
            If the draws cost more than is left. Nothing is drawn or spent then.
        NotFittedError
            If the sampler is not fitted.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        return super().sample(n_samples, budget=budget, seed=seed)

    def guarantee(self) -> str:
        """Describe what a draw costs, and what the reference has cost.

        Returns
        -------
        str
            The sentences.

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        """
        return super().guarantee() + self._cost_of_reference()

    def _cost_of_reference(self) -> str:
        """State what a collected reference has cost, and the sum; nothing of another one."""
        if not isinstance(self.reference, CollectedReference):
            return ""
        spent = self.reference.epsilon
        both = rounded_up(Fraction(spent) + Fraction(self._check_epsilon()))
        return (
            f" The reference was collected under local privacy, with epsilon = {spent!r} of "
            f"each of {self.reference.users:,} people. A person who reported for it and gives a "
            f"draw spends {both!r} in total."
        )

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability of one draw at records; for real numbers the log-density.

        Parameters
        ----------
        X
            A frame of records.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, float64 of shape (n,). With ``"resampling"`` they are for the law
            that draws come from as the number of proposals grows.

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        InvalidTypeError, InvalidValueError
            If the records cannot be used.
        """
        self._check_fitted()
        codes = table_codes(self._columns_, "X", read_frame("X", X, self._columns_)[0])
        sizes = np.zeros(len(codes))
        for column, own in zip(self._columns_, codes.T, strict=True):
            sizes += column.log_sizes[own]
        return self._log_masses(codes) - sizes

    def _read(self, X: Any) -> tuple[_Public, Integers, Any]:
        public = self._public()
        table, library = read_frame("X", X, public.columns)
        return public, table_codes(public.columns, "X", table), library

    def _learn(self, data: tuple[_Public, Integers, Any]) -> None:
        public, codes, self._library = data
        self._columns_, self.method_ = public.columns, public.method
        self._fitted_ratio = public.ratio
        self._law = public.law
        if public.law is None:
            estimate = public.estimate(codes)
            self._seen = automatic_proposals(public.epsilon)
            self._projection = Projection(public.reference, estimate.score_samples, public.epsilon)
            self._certificate = public.epsilon / 2.0
            return
        self._shape = public.shape
        self._weights = public.weights(public.method, public.law, codes)
        self._certificate = public.law.certificate

    def _draw(self, count: int, seed: int | None) -> Any:
        return frame_of(self._library, self._columns_, self._values(count, seed))

    def _values(self, count: int, seed: Any) -> dict[str, list[Any]]:
        """Draw records, column by column; ``seed`` may be streams."""
        if self._law is None:
            drawn = self._projection._drawn(count, self._seen, derived(seed, 1)).astype(np.int64)
        else:
            places = _core.choose_weighted(self._weights, count, derived(seed, 1))
            drawn = combinations(self._shape)[places]
        return {
            column.name: column.decode(codes, derived(seed, 2, place))
            for place, (column, codes) in enumerate(zip(self._columns_, drawn.T, strict=True))
        }

    def _record_of(self, codes: Integers, seed: Any) -> dict[str, list[Any]]:
        """Draw one record of a person whose records have these cells, and forget the person."""
        one = self.__sklearn_clone__()
        one._learn((one._public(), codes, None))
        return one._values(1, seed)

    def _log_masses(self, codes: Integers) -> Floats:
        """Return the log-probability of combinations of cells."""
        if self._law is None:
            return self._projection.log_density(codes.astype(np.float64))
        result: Floats = np.log(self._weights[self._places(codes)] / float(self._law.total))
        return result

    def _places(self, codes: Integers) -> Integers:
        """Return the positions of combinations among all combinations."""
        result: Integers = np.ravel_multi_index(tuple(codes.T), self._shape)
        return result

    def _ratio(self) -> Fraction:
        return self._public().ratio

    def _prepared(self) -> TableSampler:
        """Return a copy for one use that knows what is public, as its own copies do."""
        copied = self.__sklearn_clone__()
        copied._known = self._public()
        return copied

    def __sklearn_clone__(self) -> TableSampler:
        if self._known is None:
            return super().__sklearn_clone__()
        copied = TableSampler(**self.get_params(deep=False))
        copied._known = self._known
        return copied

    def _public(self) -> _Public:
        """Return what follows from the parameters alone."""
        if self._known is not None:
            return self._known
        columns = columns_of(self.columns)
        if self.records is not None:
            _arguments.integer("records", self.records, least=1)
        table: Integers | CollectedReference | None = None
        if isinstance(self.reference, CollectedReference):
            table = self.reference
            _check_collected(columns, table)
        elif self.reference is not None:
            table = table_codes(
                columns, "reference", read_frame("reference", self.reference, columns)[0]
            )
        return _Public(self._check_epsilon(), columns, CellReference(columns, table), self.records)


def _check_collected(columns: tuple[Column, ...], given: CollectedReference) -> None:
    """Refuse a reference that was collected for other columns."""
    known = {name: len(shares) for name, shares in given.marginals.items()}
    if known != {column.name: column.cells for column in columns}:
        raise InvalidValueError(
            "reference must have been collected for the same columns, got one of "
            + ", ".join(f"{name!r} with {cells:,} cells" for name, cells in known.items())
        )


@dataclass(frozen=True)
class _Public:
    """What is known before any record of a person is known."""

    epsilon: float
    columns: tuple[Column, ...]
    reference: CellReference
    records: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each column."""
        return tuple(column.cells for column in self.columns)

    @property
    def methods(self) -> tuple[str, ...]:
        """The ways in which a draw can be made."""
        if math.prod(self.shape) > _ENUMERATED:
            return ("resampling",)
        # Of one record the minimax law is the best there is; of several it knows no reference.
        if self.reference.learned and self.records != 1:
            return ("mollifier", "resampling")
        return ("minimax", "mollifier", "resampling")

    @cached_property
    def method(self) -> str:
        """The way in which a draw is made: the nearest one for people with that many records."""
        listed = [method for method in self.methods if method != "resampling"]
        if not listed:
            return "resampling"
        if self.records == 1:
            return "minimax"
        if self.records is None or len(listed) == 1:
            return "mollifier"
        return min(listed, key=lambda method: sum(self.distances(method)))

    def distances(self, method: str) -> tuple[float, float]:
        """Return how far draws are from made-up people's own records, in columns and pairs."""
        records = MANY if self.records is None else min(self.records, MANY)
        every = combinations(self.shape)
        if method == "reference":
            points = self._spread
            weights = np.full(len(points), 1.0 / len(points))
            return distances(self.shape, records, lambda _: (points, weights))
        law = None if method == "resampling" else self._law_by(method)

        def drawn(codes: Integers) -> tuple[Integers, Floats]:
            if law is None:
                points, band = self._spread, _core.SamplerBand(self.epsilon)
                found = self.estimate(codes).ratios(points)
                weights = band.weights(found, np.full(len(points), _PROPOSAL, np.uint64))[0]
                return points, weights / (float(_PROPOSAL) * len(points))
            return every, self.weights(method, law, codes) / float(law.total)

        return distances(self.shape, records, drawn)

    @cached_property
    def _spread(self) -> Integers:
        """Proposals, as many as a draw sees."""
        count = automatic_proposals(self.epsilon)
        return self.reference._draw_spread(count, seed=0).astype(np.int64)

    def estimate(self, codes: Integers) -> CellEstimate:
        """Estimate the density of a person's records."""
        return CellEstimate(
            self.columns,
            self.reference,
            codes,
            pairs=self.reference.learned,
            epsilon=self.epsilon,
        )

    def weights(self, method: str, law: FiniteLaw, codes: Integers) -> Unsigned:
        """Return the weights of all combinations for a person's records."""
        if method == "minimax":
            places = np.ravel_multi_index(tuple(codes.T), self.shape)
            return law.weights(np.bincount(places, minlength=math.prod(self.shape)))
        ratios = self.estimate(codes).ratios(combinations(self.shape))
        return law.band.weights(ratios, law.reference)[0]

    @cached_property
    def law(self) -> FiniteLaw | None:
        """The band over all combinations of cells; None if there are too many."""
        return None if self.method == "resampling" else self._law_by(self.method)

    def _law_by(self, method: str) -> FiniteLaw:
        masses = np.exp(self.reference.log_density(combinations(self.shape).astype(np.float64)))
        weights = np.maximum(np.rint(masses * UNIT), 1.0).astype(np.uint64)
        base = base_of_points(self.epsilon, weights) if method == "minimax" else None
        return FiniteLaw(self.epsilon, weights, base)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a draw, exactly."""
        if self.law is not None:
            return self.law.realized_ratio
        low, high = _core.SamplerBand(self.epsilon).limits(_PROPOSAL)
        return Fraction(high, low)


def combinations(shape: tuple[int, ...]) -> Integers:
    """List all rows of codes."""
    return np.indices(shape).reshape(len(shape), -1).T
