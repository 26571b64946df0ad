"""What every kind of question has in common: how it is described, and the verbs of its reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, NoReturn

import numpy as np

from turnout import _arguments, _arrays, _core, _kinds
from turnout._types import Array, Integers, Truths
from turnout.collecting.drawing import Counts, Drawn, Noise, rates_of
from turnout.collecting.elsewhere import AnswersElsewhere, ReportsElsewhere, answers_in
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import T
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, taking_part_in


class Kind(ABC, Generic[T]):
    """Base class of the local randomizers: one kind of question each.

    A kind says how an answer becomes a report, which sums are kept of reports, and what they
    estimate. What follows is the same for all: plans, messages, files, tallies, jobs.

    An instance is immutable and holds no randomness: it may be shared by threads, and every call
    draws from streams of its own.
    """

    #: The word for this kind in plans.
    name: ClassVar[str]

    #: The class of its tallies.
    tally_type: ClassVar[type[Any]]

    #: The class of its domains: which answers can be given.
    domain_type: ClassVar[type[Any]]

    #: Whether reports of one node in several rounds are independent, so that budgets compose.
    fresh: ClassVar[bool] = True

    #: Whether the reports of a block of nodes can be drawn by themselves, from the block's streams.
    by_blocks: ClassVar[bool] = True

    #: Why all nodes must share one rate of participation; empty where each may have its own.
    one_rate_because: ClassVar[str] = ""

    #: Whether a node may send nothing by what its answer is, which :attr:`realized_ratio` counts:
    #: then not everyone reports even where everyone takes part.
    silent: bool = False

    #: Who may be asked, where that is not everyone: for those who hand answers over.
    asked_of: ClassVar[str] = ""

    #: Why no tally can be drawn from counts of answers; empty where one can.
    no_simulation_because: ClassVar[str] = "counts of answers do not say what its tallies are"

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the kind known to plans."""
        super().__init_subclass__(**arguments)
        if "name" in cls.__dict__:
            _kinds.REGISTERED[cls.name] = cls

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The privacy parameter that was asked for, in nats."""

    @property
    @abstractmethod
    def domain(self) -> Any:
        """The answers that can be given."""

    @property
    @abstractmethod
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two answers, exactly."""

    @property
    @abstractmethod
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of a report in bits."""

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of."""

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one integer, ``(width,)`` for a row of them."""
        return ()

    @abstractmethod
    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize answers that the domain gave.

        Parameters
        ----------
        answers
            What :meth:`encode` of the domain made, one entry or row for each node.
        participation
            A common rate, or one probability for each node.
        noise
            Where the noise comes from.

        Returns
        -------
        Drawn
            The reports of the nodes that take part.

        Raises
        ------
        CodeOutsideDomainError, InvalidValueError
            If an answer is outside the domain, whether its node takes part or not, or there are not
            as many probabilities as answers.
        """

    def reporting(self, answers: Array, participation: Participation, noise: Noise) -> Integers:
        """Tell which nodes :meth:`draw_reports` makes the reports of, in their order.

        Parameters
        ----------
        answers, participation, noise
            As there; noise that is not fresh.
        """
        return _core.participants(len(answers), rates_of(participation), noise)

    @abstractmethod
    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Add up reports.

        Parameters
        ----------
        reports
            Reports that :meth:`check_reports` has accepted.
        probabilities
            With which probability the node of each took part, if every node has its own.

        Returns
        -------
        Counts
            What the kind's tally takes.
        """

    @abstractmethod
    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and add up in one pass: what :meth:`draw_reports` and the counts of it give."""

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw sums with the law of :meth:`draw_counts`, from counts of answers alone.

        Parameters
        ----------
        counts
            uint64, how many nodes hold each answer.
        rate
            The rate at which all of them take part.
        seed
            As for :meth:`randomize`.

        Returns
        -------
        Counts
            What the kind's tally takes.
        """
        raise NotImplementedError(self.name)

    def count_by_group(self, reports: Array, groups: Integers, number: int) -> list[Counts] | None:
        """Add up the reports of each of a number of groups in one pass, where that is faster.

        Returns
        -------
        list of Counts or None
            None where each group is to be counted by itself.
        """
        return None

    @abstractmethod
    def estimate_groups(self, grouped: Any, method: str) -> Any:
        """Estimate what was asked for in each group of a :class:`turnout.GroupedTally`."""

    @abstractmethod
    def check_reports(self, reports: Array) -> None:
        """Refuse reports that it cannot have made.

        Parameters
        ----------
        reports
            An array of :attr:`report_dtype`, one :attr:`report_shape` for each report.

        Raises
        ------
        InvalidValueError
            If there is one, with its position.
        """

    def improbable(self, reports: Array) -> Truths:
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
        """Describe it in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written to a file.
        """
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "domain": self.domain.to_dict(),
            **self.parameters(),
        }

    @classmethod
    def from_dict(cls, description: Any) -> Any:
        """Rebuild one of this class from :meth:`to_dict`.

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
                    parameters = {str(name): value for name, value in rest.items()}
                    made = cls._made_of(epsilon, cls.domain_type.from_dict(domain), parameters)
                except (InvalidValueError, InvalidTypeError, TypeError, KeyError) as error:
                    raise CorruptDataError(f"not the description of an oracle: {error}") from error
                if made.parameters() == rest:
                    return made
        raise CorruptDataError(f"not the description of an oracle: {_arguments.shown(description)}")

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        """Call the constructor with what a description holds."""
        return cls(epsilon, domain, **parameters)  # type: ignore[call-arg]

    def __eq__(self, other: object) -> bool:
        """Compare class, epsilon, domain and other parameters."""
        if not isinstance(other, Kind):
            return NotImplemented
        return (
            type(self) is type(other)
            and self.epsilon == other.epsilon
            and self.domain == other.domain
            and self.parameters() == other.parameters()
        )

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((type(self), self.epsilon, self.domain))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: the kernel is rebuilt."""
        return _rebuilt, (type(self), self.epsilon, self.domain, self.parameters())

    def randomize(
        self,
        values: Any,
        column: str | None = None,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> Reports:
        """Randomize the answers of the nodes that take part.

        Parameters
        ----------
        values
            One answer for each node: anything that the ``encode`` of the domain takes
            (:meth:`turnout.Domain.encode`, :meth:`turnout.Bounds.encode`). Or what
            :func:`turnout.pipeline.scan` made: read block by block.
        column
            If ``values`` is a table (pandas, polars, Arrow) or the path of a file: the column of
            the answers, as for :func:`turnout.pipeline.scan`.
        participation
            Who takes part; everyone by default. A number is the rate of all.
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
        UnknownLabelError, CodeOutsideDomainError, InvalidValueError
            If a node's answer is not in the domain, whether the node takes part or not; if there
            are not as many personal probabilities as values; if the seed is out of range.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
        >>> reports = oracle.randomize(["no", "yes"] * 500, participation=tn.Bernoulli(0.5))
        >>> reports.nodes
        1000
        >>> len(tn.mean.Duchi(1.0).randomize([0.5, -0.5, 1.0]))
        3
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"vote": ["no", "yes"] * 500})
        >>> oracle.randomize(frame, "vote", participation=0.5).nodes
        1000
        """
        if column is not None:
            values = answers_in(values, column)
        if isinstance(values, AnswersElsewhere):
            reports: Reports = values.randomized_by(self, participation, seed)
            return reports
        taking_part, checked_seed = taking_part_in(participation), _arguments.seed(seed)
        return randomized(self, self.domain.to_codes(values), taking_part, checked_seed)

    def reports(self, participation: Participation, codes: Any, nodes: int) -> Reports:
        """Take over reports that arrived by another way: what :class:`turnout.Reports` makes."""
        return Reports(self, participation, codes, nodes)

    def tally(self, reports: Reports | ReportsElsewhere) -> T:
        """Add up reports.

        Parameters
        ----------
        reports
            Reports that were made by an equal randomizer, or files of them: a
            :class:`turnout.pipeline.ReportSet`, read batch by batch.

        Returns
        -------
        BaseTally
            The sufficient statistics of the estimators: for categories a :class:`turnout.Tally`,
            for numbers a :class:`turnout.mean.MeanTally`.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another randomizer.
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
        if isinstance(reports, ReportsElsewhere):
            tally: T = reports.tallied_by(self)
            return tally
        _arguments.instance("reports", reports, Reports, "a Reports object")
        return tallied(self, reports)

    def collect(
        self,
        values: Any,
        column: str | None = None,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> T:
        """Randomize and tally in one pass, with no reports in memory.

        For the same seed the result equals ``tally(randomize(...))``.

        Parameters
        ----------
        values, column, participation, seed
            As for :meth:`randomize`. Groups of a scan are added up;
            :func:`turnout.pipeline.collect` keeps them apart.

        Returns
        -------
        BaseTally
            As for :meth:`tally`.

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
        if column is not None:
            values = answers_in(values, column)
        if isinstance(values, AnswersElsewhere):
            tally: T = values.collected_by(self, participation, seed)
            return tally
        taking_part, checked_seed = taking_part_in(participation), _arguments.seed(seed)
        return collected(self, self.domain.to_codes(values), taking_part, checked_seed)

    def simulate(
        self,
        true_counts: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> T:
        """Draw a tally with the law of :meth:`collect`, from the true counts alone.

        The cost is proportional to the size of the domain, for any number of nodes: for planning.
        (The Hadamard count-mean sketch is slower, up to some seconds: it draws for every pair of a
        row and a column of each of its functions.)

        Parameters
        ----------
        true_counts
            How many nodes hold each answer, in the order of the domain; of a distribution, how many
            have a number in each bin.
        participation
            Who takes part: everyone (default) or a common rate, which a number is too.
        seed
            As for :meth:`randomize`.

        Returns
        -------
        BaseTally
            The sufficient statistics of the estimators.

        Raises
        ------
        InvalidValueError
            If a count is negative or no whole number, there is not one for each answer, the
            participation is personal (then the values matter one by one: use :meth:`collect`), or
            counts do not say what the tally of this kind is.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
        >>> oracle.simulate([400_000_000_000, 600_000_000_000]).nodes
        1000000000000
        >>> tn.SquareWave(1.0, (0, 24), bins=3).simulate([10**9] * 3, participation=0.5).nodes
        3000000000
        """
        if self.no_simulation_because:
            raise InvalidValueError(
                "such tallies cannot be simulated from counts: "
                f"{self.no_simulation_because}; use collect"
            )
        taking_part = taking_part_in(participation)
        rate = taking_part.uniform_rate
        if rate is None:
            raise InvalidValueError(
                "participation must be Everyone() or Bernoulli(...) for a simulation from counts, "
                f"got {taking_part!r}: with personal probabilities the values matter one by one, "
                "use collect"
            )
        counts = _arguments.counts("true_counts", true_counts, self.domain.size)
        drawn = self.draw_from_counts(counts, rate, _arguments.seed(seed))
        tally: T = self.tally_type(
            Plan(self, taking_part), drawn.sums, drawn.received, _arrays.total(counts)
        )
        return tally


def randomized(
    oracle: Kind[Any], codes: Array, participation: Participation, noise: Noise
) -> Reports:
    """Randomize answers that the randomizer's domain gave.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        If an answer is outside the domain, or there are not as many personal probabilities as
        answers.
    """
    if oracle.one_rate_because and participation.uniform_rate is None:
        # Refuses it, before anything is drawn.
        Plan(oracle, participation)
    drawn = oracle.draw_reports(codes, participation, noise)
    return Reports.made(oracle, participation, drawn, len(codes), _design(participation))


def collected(oracle: Kind[T], codes: Array, participation: Participation, noise: Noise) -> T:
    """Randomize and add up answers that the randomizer's domain gave, in one pass.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :func:`randomized`.
    """
    plan = Plan(oracle, participation)
    counts = oracle.draw_counts(codes, participation, noise)
    tally: T = oracle.tally_type.of(plan, counts, len(codes), _design(participation))
    return tally


def tallied(oracle: Kind[T], reports: Reports) -> T:
    """Add up reports that an equal randomizer made.

    Raises
    ------
    PlanMismatchError
        If another one made them.
    """
    plan = Plan(oracle, reports.participation)
    plan.check_same(reports.plan, "reports")
    counts = oracle.count_reports(reports.codes, reports.probabilities)
    tally: T = oracle.tally_type.of(plan, counts, reports.nodes, reports.design)
    return tally


def _design(participation: Participation) -> DesignSums | None:
    """Add up the probabilities of all nodes, where each has its own."""
    if isinstance(participation, Personalized):
        return DesignSums.of(participation.probabilities)
    return None


def _rebuilt(kind: type[Kind[Any]], epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
    return kind._made_of(epsilon, domain, parameters)
