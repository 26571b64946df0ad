"""The verbs that every kind of question shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Protocol

import numpy as np

from turnout import _arguments, _arrays, _kinds
from turnout._types import Array, Unsigned
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import Origin
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Counts, Drawn, Noise, Randomizer, rates_of
from turnout.collecting.report_messages import Gathered
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.collecting.tally import T
from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized, taking_part_in


class AnswersElsewhere(ABC):
    """Answers outside memory, which are read block by block."""

    __slots__ = ()

    @abstractmethod
    def randomized_by(self, oracle: Any, participation: Any, seed: int | None) -> Any:
        """Return the :class:`turnout.Reports` of all answers."""

    @abstractmethod
    def collected_by(self, oracle: Any, participation: Any, seed: int | None) -> Any:
        """Return the :class:`turnout.Tally` of all answers, without reports in memory."""


class ReportsElsewhere(ABC):
    """Reports outside memory, which are read batch by batch."""

    __slots__ = ()

    @abstractmethod
    def _tallied_by(self, oracle: Any) -> Any:
        """Return the :class:`turnout.Tally` of all reports, which the oracle must have made."""


class Kind(Randomizer, Generic[T]):
    """Base class of local randomizers, one for each kind of question.

    A kind defines how an answer becomes a report, which sums of reports a tally keeps, and what
    they estimate. Plans, messages, files, tallies and jobs are the same for all kinds.

    An instance is immutable and holds no randomness. Threads may share it; every call draws from
    separate streams.
    """

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
            One answer for each node, in any form that the domain's ``encode`` accepts
            (:meth:`turnout.Domain.encode`, :meth:`turnout.Bounds.encode`). Or a scan from
            :func:`turnout.pipeline.scan`, which is read block by block.
        column
            The column of the answers, if ``values`` is a table (pandas, polars, Arrow) or the path
            of a file, as for :func:`turnout.pipeline.scan`.
        participation
            Who takes part; everyone by default. A number is the rate of all nodes.
        seed
            For tests and simulations only: an integer in [0, 2^64) that makes the result
            reproducible, whatever the number of threads. To protect people, use the default: fresh
            randomness from the operating system.

        Returns
        -------
        Reports
            The reports of the nodes that took part, in the order of the nodes.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError, InvalidValueError
            If a node's answer is not in the domain, whether the node takes part or not. Also if the
            numbers of personal probabilities and values differ, or the seed is out of range.
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
            values = _kinds.scan(values, column)
        if isinstance(values, AnswersElsewhere):
            reports: Reports = values.randomized_by(self, participation, seed)
            return reports
        taking_part, checked_seed = taking_part_in(participation), _arguments.seed(seed)
        return randomized(self, self.domain.to_codes(values), taking_part, checked_seed)

    def _reports(
        self, participation: Participation, codes: Any, nodes: int, *, origin: Origin
    ) -> Reports:
        """Build :class:`turnout.Reports` from reports that arrived as messages."""
        return Reports(self, participation, codes, nodes, origin=origin)

    def tally(self, reports: Reports | Gathered | ReportsElsewhere) -> T:
        """Add up reports.

        Parameters
        ----------
        reports
            Reports of an equal randomizer; the result of :meth:`turnout.Plan.gather`, also with
            ``on_bad="count"``; or files of reports: a :class:`turnout.pipeline.ReportSet`, which is
            read batch by batch.

        Returns
        -------
        BaseTally
            The sufficient statistics of the estimators: a :class:`turnout.Tally` for categories, a
            :class:`turnout.mean.MeanTally` for numbers.

        Raises
        ------
        PlanMismatchError
            If another randomizer made the reports.
        CodeOutsideDomainError
            If a report is not a code of the domain.
        InvalidTypeError
            If ``reports`` is none of these.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.tally(oracle.randomize([0, 1, 2, 2])).received
        4
        >>> plan = tn.Plan(oracle, tn.Everyone())
        >>> gathered = plan.gather([plan.report(2), plan.report(0), b"{}"], on_bad="count")
        >>> oracle.tally(gathered).received, gathered.refusals["malformed"]
        (2, 1)
        """
        if isinstance(reports, ReportsElsewhere):
            tally: T = reports._tallied_by(self)
            return tally
        given = reports.reports if isinstance(reports, Gathered) else reports
        found: Reports = _arguments.instance("reports", given, Reports, "a Reports object")
        return tallied(self, found)

    def collect(
        self,
        values: Any,
        column: str | None = None,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> T:
        """Randomize and tally in one pass, without reports in memory.

        For the same seed the result equals ``tally(randomize(...))``.

        Parameters
        ----------
        values, column, participation, seed
            As for :meth:`randomize`. Groups of a scan are added up;
            :func:`turnout.pipeline.collect` keeps them separate.

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
            values = _kinds.scan(values, column)
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
        """Draw a tally with the distribution of :meth:`collect`, from true counts alone.

        Use it for planning: the cost depends on the size of the domain, not on the number of nodes.
        It takes microseconds for each answer, tens of microseconds with some oracles. The joint law
        of all counts is exact, except for local hashing without a pool of functions. There each
        count has its exact law, jointly with the number of reports, and counts of different answers
        are drawn independently given who takes part.

        Parameters
        ----------
        true_counts
            The number of nodes that hold each answer, in the order of the domain; for a
            distribution, the number of nodes in each bin.
        participation
            Who takes part: everyone (default) or a common rate, also given as a number.
        seed
            As for :meth:`randomize`.

        Returns
        -------
        BaseTally
            The sufficient statistics of the estimators.

        Raises
        ------
        InvalidValueError
            If a count is negative or not a whole number, or there is not one for each answer. Also
            if the participation is personal (then single values matter: use :meth:`collect`), or
            counts do not determine the tally of this kind.
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
                "these tallies cannot be simulated from counts: "
                f"{self.no_simulation_because}; use collect"
            )
        taking_part = taking_part_in(participation)
        rate = taking_part.uniform_rate
        if rate is None:
            raise InvalidValueError(
                "participation must be Everyone() or Bernoulli(...) for a simulation "
                f"from counts, got {taking_part!r}: with personal probabilities, use "
                "collect, which takes each person's value"
            )
        counts = _arguments.counts("true_counts", true_counts, self.domain.size)
        drawn = self.draw_from_counts(counts, rate, _arguments.seed(seed))
        tally: T = self.tally_type(
            Plan(self, taking_part), drawn.sums, drawn.received, _arrays.total(counts)
        )
        return tally


def randomized(
    oracle: Kind[Any],
    codes: Array,
    participation: Participation,
    noise: Noise,
    left_out: LeftOut = NOTHING,
) -> Reports:
    """Randomize encoded answers; ``left_out`` counts rows that are not among them.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        If an answer is outside the domain, or there are not as many personal probabilities as
        answers.
    """
    if oracle._one_rate_because and participation.uniform_rate is None:
        # Refuses it, before anything is drawn.
        Plan(oracle, participation)
    drawn = oracle.draw_reports(codes, participation, noise)
    design = _design(participation)
    return Reports._made(oracle, participation, drawn, len(codes), design, left_out=left_out)


def collected(
    oracle: Kind[T],
    codes: Array,
    participation: Participation,
    noise: Noise,
    *,
    left_out: LeftOut = NOTHING,
    origin: Origin | None = None,
) -> T:
    """Randomize and add up encoded answers in one pass.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :func:`randomized`.
    """
    plan = Plan(oracle, participation)
    counts = oracle.draw_counts(codes, participation, noise)
    design, more = _design(participation), {"left_out": left_out, "origin": origin}
    tally: T = oracle.tally_type.of(plan, counts, len(codes), design, **more)
    return tally


def tallied(oracle: Kind[T], reports: Reports) -> T:
    """Add up reports of an equal randomizer.

    Raises
    ------
    PlanMismatchError
        If another randomizer made them.
    """
    plan = Plan(oracle, reports.participation)
    plan._check_same(reports.plan, "reports")
    counts = oracle.count_reports(reports.codes, reports.probabilities)
    more = {"left_out": reports.left_out, "origin": reports.origin}
    tally: T = oracle.tally_type.of(plan, counts, reports.nodes, reports.design, **more)
    return tally


def _design(participation: Participation) -> DesignSums | None:
    """Add up the probabilities of all nodes, if each has its own."""
    if isinstance(participation, Personalized):
        return DesignSums.of(participation.probabilities)
    return None


#: Support, the number of reports, and the sums of weights and of their squares of nodes with rates
#: of their own.
Tallied = tuple[Array, int, tuple[Unsigned, Unsigned] | None]


class Kernel(Protocol):
    """The functions of the compiled core for one kind."""

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of the largest likelihood ratio of a report, rounded up."""

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """The probabilities that a report supports the node's own answer, and another answer."""

    def randomize(
        self, codes: Array, rate: float | Array, seed: Noise = None
    ) -> tuple[Array, Array | None]:
        """Draw the reports, and with personal rates the probabilities of the reporting nodes."""

    def check(self, reports: Array) -> None:
        """Refuse reports that the randomizer cannot have made."""

    def supports(self, reports: Array) -> Unsigned:
        """List the codes that each report supports."""

    def tally(self, reports: Array, probabilities: Array | None = None) -> Tallied:
        """Count reports."""

    def collect(self, codes: Array, rate: float | Array, seed: Noise = None) -> Tallied:
        """Draw reports and count them."""

    def simulate(self, true_counts: Unsigned, rate: float, seed: int | None = None) -> Tallied:
        """Draw the counts of reports from the counts of answers."""


class KernelKind(Kind[T]):
    """Base class of kinds with a kernel in ``_core``."""

    #: The type of the support counts: signed where reports hold scores that may be negative.
    _support_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint64)

    @property
    def _kernel(self) -> Kernel:
        """The kernel in the compiled core; a custom oracle has none."""
        kernel: Kernel | None = getattr(self, "_core", None)
        if kernel is None:
            raise NotImplementedError(f"{type(self).__name__} has no compiled kernel")
        return kernel

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._kernel.realized_epsilon

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize codes: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        return Drawn(*self._kernel.randomize(answers, rates_of(participation), noise))

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Count the support: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        return self._counted(self._kernel.tally(reports, probabilities))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return self._counted(self._kernel.collect(answers, rates_of(participation), noise))

    def _counted(self, tallied: Tallied) -> Counts:
        support, received, sums = tallied
        weights = None if sums is None else WeightedSums(*sums)
        return Counts(support.view(self._support_dtype), received, weights)
