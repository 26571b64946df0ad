"""What every frequency oracle has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _kinds
from turnout.accounting.variation import VariationRatio, difference_up
from turnout.collecting.elsewhere import AnswersElsewhere, ReportsElsewhere
from turnout.collecting.sums import WeightedSums
from turnout.collecting.taking_part import taking_part_in
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.models import ScoreMoments
from turnout.frequency.kernel import Kernel, collected, randomized
from turnout.participation import Participation

if TYPE_CHECKING:
    from turnout.collecting.reports import Reports
    from turnout.frequency.tally import Tally

__all__ = ["FrequencyOracle", "oracle_from_dict"]

Array = npt.NDArray[Any]


class FrequencyOracle(ABC):
    """Base class of the local randomizers of categorical answers.

    An oracle is immutable and holds no randomness: it may be shared by threads, and every call
    draws from streams of its own.
    """

    #: The word for this oracle in plans.
    name: ClassVar[str]

    #: The type of the support counts: signed where reports hold scores that may be negative.
    support_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint64)

    #: Whether a report is :attr:`realized_ratio` times as likely under each answer that it supports
    #: as under each that it does not: then which these are is all that a likelihood needs.
    two_valued: ClassVar[bool] = True

    #: Whether reports of one node in several rounds are independent, so that budgets compose.
    fresh: ClassVar[bool] = True

    _registry: ClassVar[dict[str, type[FrequencyOracle]]] = _kinds.REGISTERED

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the oracle known to :func:`oracle_from_dict`."""
        super().__init_subclass__(**arguments)
        if "name" in cls.__dict__:
            FrequencyOracle._registry[cls.name] = cls

    def __init__(self, epsilon: float, domain: Domain | int) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        if not isinstance(domain, Domain):
            if isinstance(domain, bool) or not isinstance(domain, (int, np.integer)):
                raise InvalidTypeError(
                    "domain must be a Domain, as Domain(labels), or a number of codes, got "
                    f"{_arguments.shown(domain)}"
                )
            size = _arguments.integer("domain", domain, least=2, most=2**32 - 1)
            domain = Domain.from_integers(size)
        self._domain = domain

    @property
    def epsilon(self) -> float:
        """The privacy parameter that was asked for, in nats."""
        return self._epsilon

    @property
    def domain(self) -> Domain:
        """The answers that can be given."""
        return self._domain

    @property
    @abstractmethod
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two answers, exactly."""

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._kernel.realized_epsilon

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """``(p*, q*)``: how likely a report supports the own answer, and any other fixed one."""
        return self._kernel.support_probabilities

    @property
    def score_moments(self) -> ScoreMoments:
        """What a report says about one answer: the moments that all estimators are made of."""
        return ScoreMoments.pure(*self.support_probabilities)

    def shared_variance(self, total: Any, squares: Any) -> Any:
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

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of."""
        return self._domain.code_dtype

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one integer, ``(width,)`` for a row of them."""
        return ()

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of a report in bits."""

    @property
    @abstractmethod
    def _kernel(self) -> Kernel: ...

    def randomize(
        self, values: Any, *, participation: Participation | None = None, seed: int | None = None
    ) -> Reports:
        """Randomize the answers of the nodes that take part.

        Parameters
        ----------
        values
            One answer for each node: anything that :meth:`turnout.Domain.encode` takes. Or what
            :func:`turnout.pipeline.scan` made: read block by block.
        participation
            Who takes part; everyone by default.
        seed
            For tests and simulations only: an integer in [0, 2^64) that makes the result
            reproducible, whatever the number of threads. Noise that must protect somebody takes
            the default, which is fresh from the operating system.

        Returns
        -------
        Reports
            The reports of the nodes that took part, in the order of the nodes.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If a node's answer is not in the domain, whether the node takes part or not.
        InvalidValueError
            If there are not as many personal probabilities as values, or the seed is out of range.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
        >>> reports = oracle.randomize(["no", "yes"] * 500, participation=tn.Bernoulli(0.5))
        >>> reports.nodes
        1000
        """
        if isinstance(values, AnswersElsewhere):
            reports: Reports = values.randomized_by(self, participation, seed)
            return reports
        taking_part, checked_seed = taking_part_in(participation), _arguments.seed(seed)
        return randomized(self, self._domain._to_codes(values), taking_part, checked_seed)

    def tally(self, reports: Reports | ReportsElsewhere) -> Tally:
        """Count the reports that support each answer.

        Parameters
        ----------
        reports
            Reports that were made by an equal oracle, or files of them: a
            :class:`turnout.pipeline.ReportSet`, read batch by batch.

        Returns
        -------
        Tally
            The sufficient statistics of the estimators.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another oracle.
        CodeOutsideDomainError
            If a report is not a code of the domain.
        InvalidTypeError
            If ``reports`` is not a :class:`turnout.Reports`.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.tally(oracle.randomize([0, 1, 2, 2])).received
        4
        """
        from turnout.collecting.plan import Plan  # noqa: PLC0415
        from turnout.collecting.reports import Reports  # noqa: PLC0415
        from turnout.frequency.tally import Tally  # noqa: PLC0415

        if isinstance(reports, ReportsElsewhere):
            tally: Tally = reports.tallied_by(self)
            return tally
        _arguments.instance("reports", reports, Reports, "a Reports object")
        plan = Plan(self, reports.participation)
        plan.check_same(reports.plan, "reports")
        received = len(reports)
        if reports.probabilities is None:
            support = self._kernel.tally(reports.codes)
            return Tally(plan, support, received, reports.nodes)
        counts = self._kernel.tally_personalized(reports.codes, reports.probabilities)
        weights = WeightedSums(*counts[1:])
        return Tally(
            plan, counts[0], received, reports.nodes, weights=weights, design=reports.design
        )

    def collect(
        self, values: Any, *, participation: Participation | None = None, seed: int | None = None
    ) -> Tally:
        """Randomize and tally in one pass, with no reports in memory.

        For the same seed the result equals ``tally(randomize(...))``.

        Parameters
        ----------
        values, participation, seed
            As for :meth:`randomize`. Groups of a scan are added up;
            :func:`turnout.pipeline.collect` keeps them apart.

        Returns
        -------
        Tally
            The sufficient statistics of the estimators.

        Raises
        ------
        TurnoutError
            As for :meth:`randomize`.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.collect([0, 1, 2, 2] * 1000, participation=tn.Bernoulli(0.1)).nodes
        4000
        """
        if isinstance(values, AnswersElsewhere):
            tally: Tally = values.collected_by(self, participation, seed)
            return tally
        taking_part, checked_seed = taking_part_in(participation), _arguments.seed(seed)
        return collected(self, self._domain._to_codes(values), taking_part, checked_seed)

    def simulate(
        self,
        true_counts: Any,
        *,
        participation: Participation | None = None,
        seed: int | None = None,
    ) -> Tally:
        """Draw a tally with the law of :meth:`collect`, from the true counts alone.

        The cost is proportional to the size of the domain, for any number of nodes: for planning.
        (The Hadamard count-mean sketch is slower, up to some seconds: it draws for every pair of a
        row and a column of each of its functions.)

        Parameters
        ----------
        true_counts
            How many nodes hold each answer, in the order of the domain.
        participation
            Who takes part: everyone (default) or a common rate.
        seed
            As for :meth:`randomize`.

        Returns
        -------
        Tally
            The sufficient statistics of the estimators.

        Raises
        ------
        InvalidValueError
            If a count is negative or no whole number, there is not one for each answer, or the
            participation is personal (then the values matter one by one: use :meth:`collect`).
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
        >>> oracle.simulate([400_000_000_000, 600_000_000_000]).nodes
        1000000000000
        """
        from turnout.collecting.plan import Plan  # noqa: PLC0415
        from turnout.frequency.tally import Tally  # noqa: PLC0415

        taking_part = taking_part_in(participation)
        if taking_part.uniform_rate is None:
            raise InvalidValueError(
                "participation must be Everyone() or Bernoulli(...) for a simulation from counts, "
                f"got {taking_part!r}: with personal probabilities the values matter one by one, "
                "use collect"
            )
        counts = _arguments.counts("true_counts", true_counts, self._domain.size)
        rate, checked_seed = taking_part.uniform_rate, _arguments.seed(seed)
        support, received = self._kernel.simulate(counts, rate, checked_seed)
        return Tally(Plan(self, taking_part), support, received, sum(counts.tolist()))

    def tally_from_counts(
        self,
        counts: Any,
        *,
        nodes: int,
        received: int | None = None,
        participation: Participation | None = None,
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
        from turnout.frequency import warehouse  # noqa: PLC0415

        return warehouse.tally_from_counts(
            self, counts, nodes=nodes, received=received, participation=participation, by=by
        )

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
        from turnout.frequency import warehouse  # noqa: PLC0415

        return warehouse.tally_sql(self, source, column)

    def check_support(self, support: Array, received: int) -> None:
        """Refuse support counts that ``received`` reports cannot have.

        Raises
        ------
        InvalidValueError
            If the counts contradict the number of reports.
        """
        over = support > np.uint64(received)
        if over.any():
            code = int(np.flatnonzero(over)[0])
            raise InvalidValueError(
                f"support[{code}] must be at most the {received} reports received, got "
                f"{support[code]}"
            )

    def count_support(self, reports: Array) -> npt.NDArray[np.uint64]:
        """Count how many of the reports support each answer.

        Parameters
        ----------
        reports
            An array that :meth:`check_reports` has accepted.

        Returns
        -------
        numpy.ndarray
            uint64, one count for each answer.
        """
        return self._kernel.tally(reports)

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

    def improbable(self, reports: Array) -> npt.NDArray[np.bool_]:
        """Say which reports are valid and hardly ever come from an honest node.

        A report with all bits set is one, where there are many bits. They count as any other, since
        whoever means to mislead can send likely reports as well; but a number of them says that
        somebody does not follow the plan.

        Parameters
        ----------
        reports
            An array of :attr:`report_dtype`, one :attr:`report_shape` for each report.

        Returns
        -------
        numpy.ndarray
            One truth value for each report: True for those of a set of reports that an honest node
            hits with a chance of at most 2^-40, whatever its answer. None, where all reports are
            likely under some answer.

        Examples
        --------
        >>> import numpy as np
        >>> import turnout as tn
        >>> oracle = tn.OptimizedUnaryEncoding(1.0, 64)
        >>> int(oracle.improbable(oracle.randomize([3] * 1000).codes).sum())
        0
        >>> oracle.improbable(np.array([[2**64 - 1]], np.uint64))
        array([ True])
        """
        return np.zeros(len(reports), np.bool_)

    def refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that :attr:`report_dtype` does not hold."""
        limits = np.iinfo(self.report_dtype)
        outside = (reports < limits.min) | (reports > limits.max)
        position = tuple(int(index) for index in np.argwhere(outside)[0])
        raise InvalidValueError(
            f"codes[{', '.join(map(str, position))}] = {reports[position]} is out of range: "
            f"expected an integer from {limits.min} to {limits.max}"
        )

    def parameters(self) -> dict[str, Any]:
        """Name what the constructor takes beyond epsilon and the domain, in terms of JSON."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Describe the oracle in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written to a file.
        """
        return {
            "name": self.name,
            "epsilon": self._epsilon,
            "domain": self._domain.to_dict(),
            **self.parameters(),
        }

    @classmethod
    def from_dict(cls, description: Any) -> FrequencyOracle:
        """Rebuild an oracle of this class from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it is the description of anything else.
        """
        match description:
            case {
                "name": cls.name,
                "epsilon": float() | int() as epsilon,
                "domain": domain,
                **rest,
            }:
                try:
                    oracle = cls(epsilon, Domain.from_dict(domain), **_keywords(rest))
                except (InvalidValueError, InvalidTypeError, TypeError) as error:
                    raise CorruptDataError(f"not the description of an oracle: {error}") from error
                if oracle.parameters() == rest:
                    return oracle
        raise CorruptDataError(f"not the description of an oracle: {_arguments.shown(description)}")

    def __eq__(self, other: object) -> bool:
        """Compare class, epsilon, domain and other parameters."""
        if not isinstance(other, FrequencyOracle):
            return NotImplemented
        return (
            type(self) is type(other)
            and self._epsilon == other._epsilon
            and self._domain == other._domain
            and self.parameters() == other.parameters()
        )

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((type(self), self._epsilon, self._domain))

    def __repr__(self) -> str:
        """Show the constructor."""
        others = "".join(f", {name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, domain={self._domain!r}{others})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: the kernel is rebuilt."""
        return _rebuild, (type(self), self._epsilon, self._domain, self.parameters())


def oracle_from_dict(description: Any) -> FrequencyOracle:
    """Rebuild an oracle from its description in a plan.

    Parameters
    ----------
    description
        What :meth:`FrequencyOracle.to_dict` gave, perhaps through JSON.

    Returns
    -------
    FrequencyOracle
        An equal oracle.

    Raises
    ------
    CorruptDataError
        If the description is not one of an oracle that this release knows.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, 3)
    >>> tn.frequency.oracle_from_dict(oracle.to_dict()) == oracle
    True
    """
    oracle: FrequencyOracle = _kinds.from_dict(description)
    return oracle


def _keywords(rest: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in rest.items()}


def _rebuild(
    oracle: type[FrequencyOracle], epsilon: float, domain: Domain, parameters: dict[str, Any]
) -> FrequencyOracle:
    return oracle(epsilon, domain, **parameters)
