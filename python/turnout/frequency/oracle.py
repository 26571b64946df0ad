"""The base class of frequency oracles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats, Unsigned
from turnout.accounting.variation import ToldApart, VariationRatio, difference_up
from turnout.collecting.kind import KernelKind
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Counts
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import count_variances
from turnout.frequency.estimation.models import PairSupport, ScoreMoments
from turnout.frequency.groups.estimate import GroupedEstimate
from turnout.frequency.tally import Tally, tally_from_counts, tally_sql
from turnout.participation import Participation, taking_part_in

#: A report of so many bits has 128 KiB, one of so many integers 4 MiB.
LARGEST_DOMAIN = 2**20


class FrequencyOracle(KernelKind[Tally]):
    """Base class of the local randomizers of categorical answers."""

    tally_type: ClassVar[type[Any]] = Tally
    _grouped_type = GroupedEstimate
    domain_type: ClassVar[type[Any]] = Domain
    no_simulation_because: ClassVar[str] = ""

    #: Whether a report is :attr:`realized_ratio` times as likely under each answer that it supports
    #: as under each that it does not. Then a likelihood needs only the supported answers.
    _two_valued: ClassVar[bool] = True

    #: Whether all its reports support the same number of answers, so that errors add up to zero.
    _supports_equally_many: ClassVar[bool] = False

    #: What a report has for each answer, so that the domain is limited; empty if it has nothing.
    _each_answer: ClassVar[str] = ""

    #: What a database can count in its reports (:mod:`turnout.frequency.tally`). ``"code"``: a
    #: report is an answer. ``"number"``: it is one of several numbers. ``"bits"``: it has a bit for
    #: each answer. ``"scores"``: it has a score for each answer.
    _counted_by: ClassVar[str] = "number"

    #: Makes the kernel of an epsilon and a number of answers, where it needs no more.
    _compiled: ClassVar[Any] = None

    _core: Any
    _domain: Domain

    def __init__(self, epsilon: float, domain: Domain | Sequence[Hashable] | int) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._domain = domain_of("domain", domain)
        if self._each_answer and self._domain.size > LARGEST_DOMAIN:
            raise InvalidValueError(
                f"domain must have at most {LARGEST_DOMAIN} answers for {type(self).__name__}, "
                f"whose reports have {self._each_answer} for each, got {self._domain.size}"
            )
        if self._compiled is not None:
            self._core = self._compiled(self._epsilon, self._domain.size)

    @property
    def domain(self) -> Domain:
        """The possible answers."""
        return self._domain

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """``(p*, q*)``: the probability that a report supports the node's answer, and another."""
        return self._kernel.support_probabilities

    @property
    def _score_moments(self) -> ScoreMoments:
        """The moments of a report's score of one answer, on which all estimators build."""
        return ScoreMoments.pure(*self.support_probabilities)

    @property
    def _pair_support(self) -> PairSupport | None:
        """The joint support of two answers by a report; None if it differs between pairs."""
        return None

    def _shared_variance(self, total: Any, squares: Any) -> Any:
        """Return the variance of a count that comes from shared hash functions.

        Parameters
        ----------
        total, squares
            The sum of the counts of the other answers, and the sum of their squares: numbers or
            arrays.

        Returns
        -------
        float or numpy.ndarray
            The variance in squared nodes; zero if every report has its own function, or none.
        """
        return 0.0 * total

    @property
    def _permanent_covariances(self) -> tuple[float, float] | None:
        """The covariances of two reports from one permanent answer, if they are known.

        The covariance of ``(1[report supports] - q*) / (p* - q*)`` in two rounds, for the node's
        own answer and for another one. None if every report is drawn afresh.
        """
        return None

    @property
    def _permanent_context(self) -> bytes | None:
        """The context of permanent answers; a node has one permanent answer for each context.

        None if every report is drawn afresh.
        """
        return None

    def _permanent_variances(self, coefficients: Floats, held: Floats) -> Floats | None:
        """Compute the mean covariance of two reports of a node, for weighted sums of answers.

        Parameters
        ----------
        coefficients
            A row of weights of the answers, for each sum.
        held
            The shares of the answers.

        Returns
        -------
        numpy.ndarray or None
            For each sum the covariance between two reports of one node; None if it is not known.
        """
        return None

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of a report, for :class:`turnout.accounting.Shuffled`.

        It says how well a report hides among other people's. A report of a pure oracle is
        :attr:`realized_ratio` times as likely under the answers that it supports as under the
        others. So the reports of two answers are ``p* - q*`` apart in total variation. For a third
        person's reports the worst case is assumed, unless more is known.
        """
        ratio = self.realized_ratio
        distance = difference_up(*self.support_probabilities)
        return VariationRatio(ratio, min(distance, (ratio - 1) / (ratio + 1)), ratio)

    def _estimator_variance(
        self, participation: Participation, method: str, true_counts: Any, values: Any
    ) -> Floats:
        return count_variances(self, participation, method, true_counts, values)

    @property
    def _told_apart(self) -> ToldApart | None:
        """The counts that shuffled reports reveal: the numbers of reports that support an answer.

        None if this differs between answers, or is not known.
        """
        return ToldApart(*self.support_probabilities)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report."""
        return self._domain._code_dtype

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two answers; at most e^eps."""
        kernel: Any = self._kernel
        return Fraction(*kernel.words)

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw from counts: see :meth:`turnout.collecting.kind.Kind.draw_from_counts`."""
        return self._counted(self._kernel.simulate(counts, rate, seed))

    def tally_from_counts(
        self,
        counts: Any,
        *,
        nodes: int,
        received: int | None = None,
        participation: Participation | float | None = None,
        by: str = "code",
    ) -> Tally:
        """Build a tally from counts that a database computed; see :meth:`tally_sql`.

        Parameters
        ----------
        counts
            The counts. If a report is one number (direct encoding: the code of an answer), how
            often each number occurs. If a report is a bit for each answer, how many reports have
            the bit. For summation, the sum of the scores. Pass a mapping from codes to counts, rows
            or a table (pandas, polars, Arrow, DuckDB) of codes and counts, or one count for each
            code in order. Missing codes count 0. A third column may hold the number of reports.
        nodes
            The number of nodes, reporting or not.
        received
            The number of reports. Required if the counts do not determine it; otherwise compared
            with them.
        participation
            Who took part: everyone (default) or a common rate.
        by
            ``"code"``, or ``"label"`` if the keys are labels of the domain.

        Returns
        -------
        Tally
            The tally, equal to that of the reports.

        Raises
        ------
        CodeOutsideDomainError, UnknownLabelError
            If a code or label is not in the domain.
        InvalidValueError
            If a key is duplicated, the counts and numbers contradict each other, the participation
            is personal, or every report has its own hash function.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["never", "once", "often"]))
        >>> oracle.tally_from_counts({0: 70, 2: 30}, nodes=100).support
        array([70,  0, 30], dtype=uint64)
        """
        plan = Plan(self, taking_part_in(participation))
        tally: Tally = tally_from_counts(plan, counts, nodes, received, by)
        return tally

    def tally_sql(self, source: str, *, column: str = "report") -> str:
        """Write the SQL query that produces the counts for :meth:`tally_from_counts`.

        The query is plain SQL if a report is one number. It is in DuckDB's dialect if a report is a
        bit for each answer. A database does not verify the checksum of a report file;
        :func:`turnout.collecting.report_files.read_reports` does.

        Parameters
        ----------
        source
            The name of a table, or a path or pattern that ends in ``.parquet``.
        column
            The name of the column of reports.

        Returns
        -------
        str
            A query with the columns ``code`` and ``count``, and ``received`` if needed.

        Raises
        ------
        InvalidValueError
            If no group-by over reports can count the support of answers; the error gives the
            reason.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.DirectEncoding(1.0, 3).tally_sql("reports")
        'SELECT "report" AS code, count(*) AS count FROM "reports" GROUP BY "report"'
        """
        return tally_sql(self, source, column)

    def _refuse_counting(self) -> None:
        """Refuse counting by a database if no group-by over reports can do it.

        Raises
        ------
        InvalidValueError
            If counting is not possible; the error gives the reason.
        """

    @property
    def _counts_of_a_report(self) -> int | None:
        """The number of counts that a report adds to; None if it differs between reports."""
        return None if self._each_answer else 1

    def _check_support(self, support: Array, received: int) -> None:
        """Refuse support counts that the number of reports cannot have.

        Raises
        ------
        InvalidValueError
            If the counts contradict the number of reports.
        """
        over = support > np.uint64(received)
        expected = f"at most the {received} reports received"
        _arguments.refuse_entries("support", support, over, expected)

    def supports(self, reports: Array) -> Unsigned:
        """Return which answers each report supports.

        Parameters
        ----------
        reports
            An array that :meth:`check_reports` has accepted.

        Returns
        -------
        numpy.ndarray
            uint64, a row for each report: bits, 64 to a word, the first answer in the lowest.
        """
        return self._kernel.supports(reports)

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the oracle cannot have made.

        Parameters
        ----------
        reports
            An array of :attr:`report_dtype`, one :attr:`report_shape` for each report.

        Raises
        ------
        InvalidValueError
            If there is one; the error gives its position.
        """
        self._kernel.check(reports)

    def __repr__(self) -> str:
        """Show the constructor."""
        others = "".join(f", {name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, domain={self._domain!r}{others})"
