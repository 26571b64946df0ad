"""Joint tables of several questions, in one report of each person, and their shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from turnout import _arguments
from turnout._types import Axes, Floats
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.covariance import Covariance, covariance_of
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.joint.conditional import Cells, ConditionalShares
from turnout.frequency.joint.pictures import plot_table
from turnout.frequency.tally import Tally
from turnout.frequency.wrapped import CodesOracle, OfCodes
from turnout.products import ProductDomain

#: What "auto" chooses from: oracles whose estimates have known covariances, which sums of cells
#: need.
_CANDIDATES = (
    "direct_encoding",
    "subset_selection",
    "optimized_unary_encoding",
    "symmetric_unary_encoding",
    "binary_local_hashing",
)


@dataclass(frozen=True)
class JointMarginal:
    """The plan of the shares of some of the questions of a joint table.

    Attributes
    ----------
    plan
        The plan of the joint table.
    names
        The questions.
    domain
        Their answers, or the combinations of these.
    joint
        The estimate of the whole table.
    """

    plan: Any
    names: tuple[str, ...]
    domain: Domain
    joint: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description."""
        return {"plan": self.plan.to_dict(), "columns": list(self.names)}


@dataclass(frozen=True, eq=False, repr=False)
class JointEstimate(FrequencyEstimate):
    """The shares of all combinations of answers, and marginal and conditional shares.

    :meth:`JointTally.estimate` returns it. It is a :class:`turnout.FrequencyEstimate` whose labels
    are tuples. Intervals, projections, :meth:`shrink` and tables are those of any estimate.

    Examples
    --------
    >>> import turnout as tn
    >>> joint = tn.JointTable(3.0, {"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> estimate = joint.simulate([3000, 2000, 1000, 4000], seed=2).estimate()
    >>> estimate["m", "yes"].low < 0.4 < estimate["m", "yes"].high
    True
    >>> estimate.marginal("vote").frequencies.round(1)
    array([0.4, 0.6])
    >>> estimate.conditional("vote", given="sex").shares.round(1)
    array([[0.6, 0.4],
           [0.2, 0.8]])
    """

    @property
    def domain(self) -> ProductDomain:
        """All combinations of answers."""
        domain: ProductDomain = self.plan.domain
        return domain

    @property
    def questions(self) -> Mapping[str, Domain]:
        """The answers to each question."""
        return self.domain.columns

    @property
    def table(self) -> Floats:
        """The shares as an array with an axis for each question."""
        return self.frequencies.reshape(self.domain.shape)

    @property
    def covariance(self) -> Covariance:
        """The covariances between the shares before post-processing.

        Raises
        ------
        EstimatorError
            If they are not known: the estimator is biased, nodes have personal probabilities, or
            the oracle's reports have unknown dependences.
        """
        return covariance_of(self)

    def marginal(self, *names: str) -> FrequencyEstimate:
        """Estimate the shares of some of the questions, summed over the others.

        Parameters
        ----------
        *names
            The questions: one or more, not all.

        Returns
        -------
        FrequencyEstimate
            The shares of the answers to one question; for several a :class:`JointEstimate`. They
            come from the joint shares before post-processing.

        Raises
        ------
        InvalidValueError
            If a question is not in the table or is duplicated, or no or all questions are named.
        EstimatorError
            If the covariances are not known: see :attr:`covariance`.

        Examples
        --------
        >>> import turnout as tn
        >>> joint = tn.JointTable(1.0, {"a": 2, "b": 2, "c": 5})
        >>> estimate = joint.simulate([100] * 20, seed=1).estimate()
        >>> estimate.marginal("c").frequencies.size, estimate.marginal("a", "c").table.shape
        (5, (2, 5))
        """
        chosen = self._checked("marginal", names)
        if len(chosen) == len(self.questions):
            raise InvalidValueError(
                f"marginal must leave out a question, got {_arguments.listed(chosen)}: all are the "
                "joint table"
            )
        if isinstance(self.plan, JointMarginal):
            found: FrequencyEstimate = self.plan.joint.marginal(*chosen)
            return replace(found, clipped=self.clipped)
        cells = Cells(self.covariance, self.domain.shape, self._axes(chosen))
        raw = cells.summed(self.estimation.frequencies)
        estimation = Estimation(raw, cells.variances)
        domains = {name: self.questions[name] for name in chosen}
        domain = ProductDomain(domains) if len(chosen) > 1 else domains[chosen[0]]
        plan = JointMarginal(self.plan, chosen, domain, self)
        kind = JointEstimate if len(chosen) > 1 else FrequencyEstimate
        made = kind._from_estimation(
            plan, self.method, self.nodes, self.received, estimation, left_out=self.left_out
        )
        return replace(made, clipped=self.clipped)

    def conditional(
        self, of: str, *, given: str | tuple[str, ...] | list[str]
    ) -> ConditionalShares:
        """Estimate how people who gave one answer answered another question.

        Parameters
        ----------
        of
            The question of the shares.
        given
            The question or questions of the condition.

        Returns
        -------
        ConditionalShares
            The shares of the answers to ``of`` for each answer or combination of ``given``, with
            intervals.

        Raises
        ------
        InvalidValueError
            If a question is not in the table, or is duplicated.
        EstimatorError
            If the covariances are not known: see :attr:`covariance`.
        """
        among = self._checked("given", (given,) if isinstance(given, str) else tuple(given))
        wanted = self._checked("of", (of,))[0]
        if wanted in among:
            raise _arguments.invalid("of must be a question that is not in given", of)
        if isinstance(self.plan, JointMarginal):
            found: ConditionalShares = self.plan.joint.conditional(wanted, given=among)
            return found.clip_intervals() if self.clipped else found
        shape, inner = self.domain.shape, self._axes((wanted,))
        outer = self._axes(among)
        return ConditionalShares(
            Cells(self.covariance, shape, (*outer, *inner)),
            self.estimation.frequencies,
            {name: self.questions[name] for name in among},
            (wanted, self.questions[wanted]),
            clipped=self.clipped,
        )

    def _axes(self, names: tuple[str, ...]) -> tuple[int, ...]:
        places = {name: axis for axis, name in enumerate(self.questions)}
        return tuple(places[name] for name in names)

    def _checked(self, argument: str, names: tuple[Any, ...]) -> tuple[str, ...]:
        if not names:
            raise InvalidValueError(f"{argument} must name a question, got none")
        for name in names:
            _arguments.choice(argument, name, tuple(self.questions))
        if len(set(names)) < len(names):
            raise InvalidValueError(
                f"{argument} must name different questions, got {_arguments.listed(names)}"
            )
        return names

    def plot(
        self,
        truth: Any = None,
        *,
        ax: Axes | None = None,
        level: float = 0.95,
        simultaneous: str | None = None,
    ) -> Axes:
        """Draw the shares: two questions as a coloured table, else like any estimate.

        Parameters
        ----------
        truth, ax, level, simultaneous
            As for :meth:`turnout.FrequencyEstimate.plot`; with a truth, points with error bars.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If the truth has the wrong size.

        Examples
        --------
        >>> import turnout as tn
        >>> joint = tn.JointTable(1.0, {"sex": ["f", "m"], "age": 4})
        >>> axes = joint.simulate([100] * 8, seed=1).estimate().plot()
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('age', 'sex')
        """
        if truth is None and len(self.questions) == 2:
            return plot_table(self, ax, level, simultaneous)
        return super().plot(truth, ax=ax, level=level, simultaneous=simultaneous)


class JointTally(Tally):
    """The number of reports that support each combination of answers."""

    told: ClassVar[str] = "combinations"

    def estimate(self, method: str = "hajek") -> JointEstimate:
        """Estimate the shares of all combinations.

        Parameters
        ----------
        method
            As in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        JointEstimate
            The joint shares, from which marginal and conditional shares are computed.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If the method does not apply to this participation or to an empty tally.

        Examples
        --------
        >>> import turnout as tn
        >>> joint = tn.JointTable(1.0, {"a": 2, "b": 3})
        >>> joint.simulate([300, 200, 100, 100, 200, 300], seed=1).estimate().table.shape
        (2, 3)
        """
        return JointEstimate._from_tally(self, method)


class JointTable(CodesOracle):
    """Report the answers to several questions together, for a joint table.

    Each combination of answers is a separate answer, which gets the whole epsilon. So a person's
    message is protected as a whole, however many of the answers change. The estimate has the joint
    shares, the shares of each question and of several together, and the shares of one answer among
    people who gave another, all with their covariances.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    columns
        The answers to each question, or their number: at least two questions, with at most 2^20
        combinations. Or a :class:`turnout.frequency.joint.ProductDomain`.
    oracle
        The oracle for the combination: ``"auto"`` (default) for the one of smallest variance whose
        covariances are known, the name of an oracle, or a class such as
        :class:`turnout.DirectEncoding`. Or an oracle with as many codes as there are combinations,
        or its description.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or the oracle has a larger epsilon or
        another number of answers.

    Notes
    -----
    The variance of a cell hardly depends on the number of cells, but that of a sum over cells grows
    with their number. So the estimate of each single question gets worse the more answers the
    others have. If you do not need joint shares, :class:`turnout.SampledAttribute` has the smaller
    error. If you need them only for two of many questions at a time, use
    :class:`turnout.PairTables`.

    Examples
    --------
    >>> import turnout as tn
    >>> joint = tn.JointTable(2.0, {"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> people = {"sex": ["f"] * 6000 + ["m"] * 4000, "vote": ["no", "yes"] * 5000}
    >>> estimate = joint.collect(people, seed=1).estimate()
    >>> estimate.table.shape
    (2, 2)
    >>> estimate.marginal("sex").frequencies.round(1)
    array([0.6, 0.4])
    >>> shares = estimate.conditional("vote", given="sex")
    >>> shares["f", "yes"].low < 0.5 < shares["f", "yes"].high
    True
    """

    name = "joint_table"
    tally_type = JointTally
    domain_type = ProductDomain

    _domain: ProductDomain

    def __init__(
        self,
        epsilon: float,
        columns: ProductDomain | Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OfCodes = "auto",
    ) -> None:
        domain = columns if isinstance(columns, ProductDomain) else ProductDomain(columns)
        super().__init__(epsilon, domain, oracle, _CANDIDATES)

    @property
    def columns(self) -> Mapping[str, Domain]:
        """The answers to each question."""
        return self._domain.columns

    def __repr__(self) -> str:
        """Show the questions and the oracle."""
        sizes = ", ".join(f"{name}: {each.size}" for name, each in self.columns.items())
        inner = type(self._inner).__name__
        return f"JointTable(epsilon={self._epsilon!r}, {{{sizes}}}, oracle={inner})"
