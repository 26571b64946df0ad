"""What every frequency oracle has in common."""

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
    #: as under each that it does not: then which these are is all that a likelihood needs.
    _two_valued: ClassVar[bool] = True

    #: Whether all its reports support the same number of answers, so that errors add up to zero.
    _supports_equally_many: ClassVar[bool] = False

    #: What a report has for each answer, so that the domain is limited; empty if it has nothing.
    _each_answer: ClassVar[str] = ""

    #: What a database can count of its reports (:mod:`turnout.frequency.tally`): ``"code"`` if
    #: a report is an answer, ``"number"`` if it is one of so many numbers, ``"bits"`` if it has a
    #: bit for each answer, ``"scores"`` if a score for each.
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
        """The answers that can be given."""
        return self._domain

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """``(p*, q*)``: how likely a report supports the own answer, and any other fixed one."""
        return self._kernel.support_probabilities

    @property
    def _score_moments(self) -> ScoreMoments:
        """What a report says about one answer: the moments that all estimators are made of."""
        return ScoreMoments.pure(*self.support_probabilities)

    @property
    def _pair_support(self) -> PairSupport | None:
        """What a report says about two answers at once; None if that is not the same for all."""
        return None

    def _shared_variance(self, total: Any, squares: Any) -> Any:
        """Give what hash functions shared by all reports add to the variance of a count.

        Parameters
        ----------
        total, squares
            The sum of the counts of the other answers, and that of their squares: numbers or
            arrays.

        Returns
        -------
        float or numpy.ndarray
            In squared nodes; zero where every report has a function of its own, or none.
        """
        return 0.0 * total

    @property
    def _permanent_covariances(self) -> tuple[float, float] | None:
        """What two reports of a node that keeps a permanent answer share, if that is known.

        The covariance of ``(1[report supports] - q*) / (p* - q*)`` in two rounds, for the node's
        own answer and for another one. None where every report is drawn afresh.
        """
        return None

    @property
    def _permanent_context(self) -> bytes | None:
        """What permanent answers are of: equal ones of a node are the same where these are equal.

        None where every report is drawn afresh.
        """
        return None

    def _permanent_variances(self, coefficients: Floats, held: Floats) -> Floats | None:
        """Compute what two reports of a node share of sums over answers, in the mean over nodes.

        Parameters
        ----------
        coefficients
            A row of weights of the answers for each sum.
        held
            The shares of the answers.

        Returns
        -------
        numpy.ndarray or None
            For each sum the covariance of what two reports of one node say of it; None if that is
            not known.
        """
        return None

    @property
    def variation_ratio(self) -> VariationRatio:
        """How much a report hides among other people's, for :class:`turnout.accounting.Shuffled`.

        The likelihood of a report of a pure oracle is :attr:`realized_ratio` times as large under
        the answers that the report supports as under the others, so that the reports of two answers
        are ``p* - q*`` apart in total variation. What a third person's reports look like is taken
        at its worst, unless more is known.
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
        """What can be counted among shuffled reports: those that support an answer.

        None where that is not the same for all answers, or not known.
        """
        return ToldApart(*self.support_probabilities)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of."""
        return self._domain._code_dtype

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two answers, exactly; at most e^eps."""
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
        """Make a tally of counts that a database computed: see :meth:`tally_sql`.

        Parameters
        ----------
        counts
            Of oracles whose report is one number (direct encoding: the code of an answer), how
            often each occurs; of oracles whose report is a bit for each answer, how many reports
            have it; of summation, the sum of the scores. A mapping from codes to counts, rows or a
            table (pandas, polars, Arrow, DuckDB) of codes and counts, or one count for each code
            in order. Codes left out count 0. A third column may hold the number of reports.
        nodes
            The number of nodes, reporting or not.
        received
            The number of reports. Needed where counts do not say it, else compared with them.
        participation
            Who took part: everyone (default) or a common rate.
        by
            ``"code"``, or ``"label"`` if the counts are of labels of the domain.

        Returns
        -------
        Tally
            Equal to that of the reports.

        Raises
        ------
        CodeOutsideDomainError, UnknownLabelError
            If a code or label is none of the domain.
        InvalidValueError
            If a key is there twice, the counts and numbers contradict each other, the participation
            is personal, or every report has a hash function of its own.
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
        """Write the SQL query whose result :meth:`tally_from_counts` takes.

        Where a report is one number, plain SQL; where it is a bit for each answer, in the dialect
        of DuckDB. A database does not check the checksum of a report file:
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
            A query with the columns ``code`` and ``count``, and where needed ``received``.

        Raises
        ------
        InvalidValueError
            If no group-by over reports can count the support of answers, with the reason.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.DirectEncoding(1.0, 3).tally_sql("reports")
        'SELECT "report" AS code, count(*) AS count FROM "reports" GROUP BY "report"'
        """
        return tally_sql(self, source, column)

    def _refuse_counting(self) -> None:
        """Refuse to be counted by a database, where no group-by over reports can.

        Raises
        ------
        InvalidValueError
            With the reason.
        """

    @property
    def _counts_of_a_report(self) -> int | None:
        """How many of the counts a report adds to; None if that is not the same for all."""
        return None if self._each_answer else 1

    def _check_support(self, support: Array, received: int) -> None:
        """Refuse support counts that ``received`` reports cannot have.

        Raises
        ------
        InvalidValueError
            If the counts contradict the number of reports.
        """
        over = support > np.uint64(received)
        expected = f"at most the {received} reports received"
        _arguments.refuse_entries("support", support, over, expected)

    def supports(self, reports: Array) -> Unsigned:
        """Tell which answers each report supports.

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
            If there is one, with its position.
        """
        self._kernel.check(reports)

    def __repr__(self) -> str:
        """Show the constructor."""
        others = "".join(f", {name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, domain={self._domain!r}{others})"
