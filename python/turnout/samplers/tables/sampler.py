"""One private record of a person's table, with columns of several types."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._seeds import derived
from turnout._types import Floats, Integers, Unsigned
from turnout.samplers.base import RatioSampler
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.drawing import automatic_proposals
from turnout.samplers.finite_law import UNIT, FiniteLaw
from turnout.samplers.minimax import MinimaxSampler, choose_sampler
from turnout.samplers.mollifier import Projection
from turnout.samplers.tables.columns import Column, columns_of, table_codes
from turnout.samplers.tables.estimate import CellEstimate
from turnout.samplers.tables.frames import frame_of, read_frame
from turnout.samplers.tables.reference import CellReference

#: All combinations of so few cells are weighed, and one of them is drawn.
_ENUMERATED: Final = 2**12

#: The weight of a proposal under the reference, as in the core.
_PROPOSAL: Final = 2**32


@dataclass(eq=False, repr=False)
class TableSampler(RatioSampler):
    """A private record of a person's table: numbers, labels, booleans, dates, missing values.

    ``fit`` takes a frame of one person's records, ``sample`` gives a frame with one record. The
    draw is epsilon-locally differentially private for *all* records of the person together: no draw
    is more than e^epsilon times as likely under one set of records as under another, however many
    records each has.

    Each column is cut into public cells: a cell for each label, bins of numbers and dates, one for
    what is missing. The law over combinations of cells stays within a band around a public
    reference; within a cell the value is drawn evenly.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    columns
        For each column what it may hold, which is public and must not be taken from a person's
        data:

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
        A public table with the same columns, as a frame: the reference is then a tree of pairs of
        its columns, in which everything has a small uniform share. Uniform if None. It must not be
        made of the persons' data.
    records
        About how many records a person has, if that is publicly known. It matters where there are
        few combinations of cells and no reference: for few records the law of
        :class:`MinimaxSampler` may be closer, as :func:`choose_sampler` computes.

    Attributes
    ----------
    method_
        How a draw is made: ``"minimax"`` (all combinations of cells are weighed, and the worst case
        is the least possible), ``"mollifier"`` (all combinations are weighed), or ``"resampling"``
        (one of many proposals from the reference).
    certificate_
        A proven bound of ``|log Q/Q0|`` for the law Q of a draw and the reference Q0.
    budget_
        What pays for draws where no other budget is given: one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the records cannot be used. A value beyond the bounds, or
        that is none of the labels, is refused.
    MissingExtraError
        From ``fit``, if narwhals or pyarrow is not installed.

    Notes
    -----
    All combinations are weighed if they are at most 4,096. Else a fixed number of proposals is
    drawn from the reference, which know nothing of the records, and integer weights decide which of
    them is returned: its probabilities differ by at most e^epsilon between any two persons,
    exactly, even given the proposals. So the guarantee does not depend on the density estimate.

    The columns of the draw have the types of ``columns``, and not those of the person's frame,
    which may tell whether anything is missing there.

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
            As of every sampler: see :meth:`PrivateSampler.sample`.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The draws, one a row, in a frame of the library that the records came in.

        Raises
        ------
        BudgetExceededError
            If the draws cost more than is left; nothing was drawn or spent.
        NotFittedError
            If the sampler was not fitted.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        return super().sample(n_samples, budget=budget, seed=seed)

    def score_samples(self, X: Any) -> Floats:
        """Give the log-probability of one draw at given records; of real numbers the log-density.

        Parameters
        ----------
        X
            A frame of records.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, float64 of shape (n,). By ``"resampling"`` those of the law that
            draws come from as the number of proposals grows.

        Raises
        ------
        NotFittedError
            If the sampler was not fitted.
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
        pairs = self.reference is not None
        estimate = CellEstimate(public.columns, public.reference, codes, pairs=pairs)
        self._law = public.law
        if public.law is None:
            self._seen = automatic_proposals(self._epsilon_)
            self._projection = Projection(public.reference, estimate.score_samples, self._epsilon_)
            self._certificate = self._epsilon_ / 2.0
            return
        self._shape = public.shape
        if public.method == "minimax":
            counts = np.bincount(self._places(codes), minlength=math.prod(public.shape))
            self._weights = public.law.weights(counts)
        else:
            ratios = estimate.ratios(_combinations(public.shape))
            self._weights = public.law.band.weights(ratios, public.law.reference)[0]
        self._certificate = public.law.certificate

    def _draw(self, count: int, seed: int | None) -> Any:
        if self._law is None:
            drawn = self._projection.sample(
                count, proposals=self._seen, seed=derived(seed, 1)
            ).astype(np.int64)
        else:
            places = _core.choose_weighted(self._weights, count, derived(seed, 1))
            drawn = _combinations(self._shape)[places]
        values = {
            column.name: column.decode(codes, derived(seed, 2, place))
            for place, (column, codes) in enumerate(zip(self._columns_, drawn.T, strict=True))
        }
        return frame_of(self._library, self._columns_, values)

    def _log_masses(self, codes: Integers) -> Floats:
        """Give the log-probability of combinations of cells."""
        if self._law is None:
            return self._projection.log_density(codes.astype(np.float64))
        result: Floats = np.log(self._weights[self._places(codes)] / float(self._law.total))
        return result

    def _places(self, codes: Integers) -> Integers:
        """Give the places of combinations among all."""
        result: Integers = np.ravel_multi_index(tuple(codes.T), self._shape)
        return result

    def _ratio(self) -> Fraction:
        return self._public().ratio

    def _prepared(self) -> TableSampler:
        """Give a copy, for one use, that knows what is public: so do copies of it."""
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
        """Give what follows from the parameters alone."""
        if self._known is not None:
            return self._known
        columns = columns_of(self.columns)
        if self.records is not None:
            _arguments.integer("records", self.records, least=1)
        table = None
        if self.reference is not None:
            table = table_codes(
                columns, "reference", read_frame("reference", self.reference, columns)[0]
            )
        return _Public(self._check_epsilon(), columns, CellReference(columns, table), self.records)


@dataclass(frozen=True)
class _Public:
    """What is known before any record of a person is."""

    epsilon: float
    columns: tuple[Column, ...]
    reference: CellReference
    records: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each column."""
        return tuple(column.cells for column in self.columns)

    @cached_property
    def method(self) -> str:
        """How a draw is made."""
        size = math.prod(self.shape)
        if size > _ENUMERATED:
            return "resampling"
        if self.reference.learned or self.records is None:
            return "mollifier"
        chosen = choose_sampler(self.epsilon, size, records=self.records)
        return "minimax" if isinstance(chosen, MinimaxSampler) else "mollifier"

    @cached_property
    def law(self) -> FiniteLaw | None:
        """The band over all combinations of cells; None where they are too many."""
        size = math.prod(self.shape)
        if size > _ENUMERATED:
            return None
        masses = np.exp(self.reference.log_density(_combinations(self.shape).astype(np.float64)))
        weights = np.maximum(np.rint(masses * UNIT), 1.0).astype(np.uint64)
        base = size / (math.exp(self.epsilon) + (size - 1)) if self.method == "minimax" else None
        return FiniteLaw(self.epsilon, weights, base)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a draw, exactly."""
        if self.law is not None:
            return self.law.realized_ratio
        low, high = _core.SamplerBand(self.epsilon).limits(_PROPOSAL)
        return Fraction(high, low)


def _combinations(shape: tuple[int, ...]) -> Integers:
    """List all rows of codes."""
    return np.indices(shape).reshape(len(shape), -1).T
