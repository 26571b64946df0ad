"""Estimated joint shares of the answers to several questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from turnout import _arguments
from turnout._types import Axes, Floats
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.covariance import Covariance, covariance_of
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.joint.conditional import ConditionalShares
from turnout.frequency.joint.pictures import plot_table
from turnout.frequency.joint.sums import Cells
from turnout.products import ProductDomain


@dataclass(frozen=True)
class JointMarginal:
    """Some of the questions of a joint table: what their shares were collected by.

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
        """Describe it in terms of JSON."""
        return {"plan": self.plan.to_dict(), "columns": list(self.names)}


@dataclass(frozen=True, eq=False, repr=False)
class JointEstimate(FrequencyEstimate):
    """The shares of all combinations of answers, and what follows from them.

    Made by :meth:`JointTally.estimate`. It is a :class:`turnout.FrequencyEstimate` whose labels are
    tuples: intervals, projections, :meth:`shrink` and tables are those of any estimate.

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
    def questions(self) -> Mapping[str, Domain]:
        """For each question its answers."""
        return self._product.columns

    @property
    def table(self) -> Floats:
        """The shares as an array with an axis for each question."""
        return self.frequencies.reshape(self._product.shape)

    @property
    def _product(self) -> ProductDomain:
        domain: Any = self.domain
        found: ProductDomain = domain
        return found

    @property
    def covariance(self) -> Covariance:
        """The covariances between the shares before post-processing.

        Raises
        ------
        EstimatorError
            If they are not known: the estimator is biased, nodes have personal probabilities, or
            reports of the oracle hang together in ways of their own.
        """
        return covariance_of(self)

    def marginal(self, *names: str) -> FrequencyEstimate:
        """Estimate the shares of some of the questions, whatever is answered to the others.

        Parameters
        ----------
        *names
            The questions: one or more, not all.

        Returns
        -------
        FrequencyEstimate
            Of the answers to one question; a :class:`JointEstimate` of several. Made from the
            joint shares before post-processing.

        Raises
        ------
        InvalidValueError
            If a question is not in the table, is named twice, or none or all are named.
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
        chosen = self._checked("names", names)
        if len(chosen) == len(self.questions):
            raise InvalidValueError("names must leave out a question: all are the joint table")
        if isinstance(self.plan, JointMarginal):
            found: FrequencyEstimate = self.plan.joint.marginal(*chosen)
            return replace(found, clipped=self.clipped)
        cells = Cells(self.covariance, self._product.shape, self._axes(chosen))
        raw = cells.summed(self.estimation.frequencies)
        estimation = Estimation(raw, cells.variances)
        domains = {name: self.questions[name] for name in chosen}
        domain = ProductDomain(domains) if len(chosen) > 1 else domains[chosen[0]]
        plan = JointMarginal(self.plan, chosen, domain, self)
        kind = JointEstimate if len(chosen) > 1 else FrequencyEstimate
        made = kind.from_estimation(plan, self.method, self.nodes, self.received, estimation)
        return replace(made, clipped=self.clipped)

    def conditional(
        self, of: str, *, given: str | tuple[str, ...] | list[str]
    ) -> ConditionalShares:
        """Estimate how those who gave one answer answered another question.

        Parameters
        ----------
        of
            The question whose shares are wanted.
        given
            The question or questions that say among whom.

        Returns
        -------
        ConditionalShares
            For each answer or combination of ``given`` the shares of the answers to ``of``, with
            intervals.

        Raises
        ------
        InvalidValueError
            If a question is not in the table, or is named twice.
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
        shape, inner = self._product.shape, self._axes((wanted,))
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
        """Draw the shares: a coloured table of two questions, else as any estimate.

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
