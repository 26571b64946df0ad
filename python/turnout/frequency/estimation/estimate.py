"""Estimated frequencies, with valid intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Axes, Floats, Integers, Self
from turnout.collecting.estimate import BaseEstimate
from turnout.collecting.intervals import checked_level
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.tally import CountedTally
from turnout.domain import Domain
from turnout.errors import EstimatorError
from turnout.frequency.estimation.answer import Answered, Columns
from turnout.frequency.estimation.estimators import ESTIMATORS, Estimation, with_pool
from turnout.frequency.estimation.intervals import Interval, limits_of
from turnout.frequency.estimation.projection import PROJECTIONS
from turnout.frequency.estimation.rounds import with_rounds
from turnout.frequency.estimation.shrinkage import Shrinkage, shared, shrunk
from turnout.frequency.pictures import plot_estimate

#: The word of :meth:`FrequencyEstimate.shrink` in ``postprocessing``, and that of groups that learn
#: from each other.
SHRUNK = "empirical_bayes"
ACROSS = "empirical_bayes_across_groups"


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyEstimate(BaseEstimate[Domain], Answered):
    """The frequency of each answer among all nodes, with standard errors and intervals.

    :meth:`turnout.Tally.estimate` returns it. Estimates are not forced into a distribution, so that
    they stay (nearly) unbiased. They may be negative or above one; :meth:`project` makes a
    distribution of them.

    Attributes
    ----------
    plan
        The plan of the data: a :class:`turnout.Plan`, or a mechanism of :mod:`turnout.distributed`.
        Its ``domain`` has the answers.
    method
        The estimator.
    nodes, received
        The numbers of nodes and of reports.
    frequencies
        float64, one for each answer: the estimated share of all nodes.
    postprocessing
        ``"none"``, the name of the projection that was applied, or ``"empirical_bayes"`` after
        :meth:`shrink`.
    estimation
        The frequencies before any projection, with their law. Intervals and combinations are
        computed from them.
    shrinkage
        After :meth:`shrink`, how the answers were shrunk towards each other, and where this may
        mislead; else None.
    clipped
        Whether intervals are cut to [0, 1]; see :meth:`clip_intervals`.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(3.0, tn.Domain(["no", "yes"]))
    >>> estimate = oracle.collect(["no"] * 9000 + ["yes"] * 1000, seed=1).estimate()
    >>> estimate.interval(0.95).contains([0.9, 0.1])
    array([ True,  True])
    """

    frequencies: Floats
    postprocessing: str
    estimation: Estimation = field(repr=False)
    shrinkage: Shrinkage | None = field(default=None, repr=False)
    clipped: bool = field(default=False, repr=False)

    @classmethod
    def _from_tally(cls, tally: CountedTally, method: str) -> Self:
        """Apply one of :data:`~turnout.frequency.estimation.estimators.ESTIMATORS` to a tally.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If there are no nodes, or the estimator does not apply.
        """
        estimator = ESTIMATORS[_arguments.choice("method", method, tuple(ESTIMATORS))]
        if tally.nodes == 0:
            raise EstimatorError("cannot estimate: the tally has no nodes")
        estimation = with_pool(estimator(tally), tally.oracle, tally.nodes)
        estimation = with_rounds(estimation, tally, method)
        return cls._from_estimation(
            tally.plan, method, tally.nodes, tally.received, estimation, left_out=tally.left_out
        )

    @classmethod
    def _from_estimation(
        cls,
        plan: Any,
        method: str,
        nodes: int,
        received: int,
        estimation: Estimation,
        *,
        left_out: LeftOut = NOTHING,
    ) -> Self:
        """Create an estimate from frequencies with a known law.

        Parameters
        ----------
        plan
            The plan of the data: anything with a ``domain``.
        method
            The name of the estimator.
        nodes, received
            The numbers of nodes and of reports.
        estimation
            The frequencies and their law.
        left_out
            The rows or messages that do not count.
        """
        frequencies = _read_only(estimation.frequencies)
        return cls(
            plan, method, nodes, received, frequencies, "none", estimation, left_out=left_out
        )

    @property
    def counts(self) -> Floats:
        """The estimated number of nodes that hold each answer."""
        return self.frequencies * self.nodes

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of the frequencies before post-processing."""
        return np.sqrt(self.estimation.variances)

    @property
    def _unprojected(self) -> FrequencyEstimate:
        """The estimate before post-processing."""
        return self._made(self.estimation.frequencies)

    def _made(
        self, frequencies: Floats, postprocessing: str = "none", how: Shrinkage | None = None
    ) -> FrequencyEstimate:
        """Return the same estimate with other frequencies, and the name of the post-processing."""
        made = _read_only(frequencies)
        return replace(self, frequencies=made, postprocessing=postprocessing, shrinkage=how)

    def interval(
        self, level: float = 0.95, *, method: str = "auto", simultaneous: str | None = None
    ) -> Interval:
        """Return confidence intervals of the frequencies.

        They are for the estimate before post-processing, whose distribution is known. They are not
        cut to [0, 1] unless you call :meth:`clip_intervals`.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        method
            ``"normal"``: the estimate plus and minus standard errors. ``"score"``: inverts the test
            of each frequency with the variance at that frequency; covers better for rare answers
            and few reports. ``"exact"``: Clopper-Pearson limits of the number of supporting
            reports. They cover for any counts, and are wide if the perturbation is small. For
            :mod:`turnout.distributed`, limits by the exact law of the noise or of the sampled
            counts. ``"empirical_bayes"``: contains the truth for at least ``level`` of the answers
            *on average over the answers*, whatever the frequencies, and guarantees nothing for a
            single one (Armstrong, Kolesar, Plagborg-Moller 2022). These intervals are shorter,
            around estimates shrunk towards the mean frequency. ``"auto"`` (default): score. Exact
            for distributed aggregation, and for answers with too few supporting reports for the
            normal law. Normal for estimators weighted by personal probabilities, which have
            neither. There, ``"hajek"`` uses Student's quantile for the effective number of reports,
            and both have a floor of the variance for answers that hardly any report supports.
        simultaneous
            None: the level holds for each answer separately. ``"bonferroni"`` or ``"sidak"``: it
            holds for all answers simultaneously.

        Returns
        -------
        Interval
            Lower and upper limits, float64, one for each answer.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        EstimatorError
            If the estimator is biased (then no interval around it covers), or has no score or
            exact interval.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.DirectEncoding(1.0, 3).simulate([100, 200, 700], seed=1)
        >>> tally.estimate().interval(0.9, simultaneous="sidak")  # doctest: +ELLIPSIS
        Interval({0: ... to ..., 1: ... to ..., 2: ... to ...}, level=0.9, 'score', ...)
        """
        interval = self._interval(level, method, simultaneous, slice(None))
        return replace(interval, labels=self.domain._sequence)

    def _interval(
        self, level: float, method: str, simultaneous: str | None, codes: Integers | slice
    ) -> Interval:
        """Compute the limits of some answers, cut to [0, 1] if requested."""
        found = limits_of(
            self.estimation, self.method, codes, level, method=method, simultaneous=simultaneous
        )
        if not self.clipped:
            return found
        return replace(found, low=np.clip(found.low, 0.0, 1.0), high=np.clip(found.high, 0.0, 1.0))

    def clip_intervals(self) -> FrequencyEstimate:
        """Return the same estimate with all intervals cut to [0, 1].

        A share is never outside, so the intervals contain the truth as often as before. An interval
        that lies outside as a whole becomes a point at 0 or 1; uncut, it would show that something
        went wrong.

        Returns
        -------
        FrequencyEstimate
            The same estimate, with cut intervals.

        Examples
        --------
        >>> import turnout as tn
        >>> estimate = tn.DirectEncoding(1.0, 3).simulate([0, 10, 40], seed=1).estimate()
        >>> limits = estimate.clip_intervals().interval()
        >>> bool(estimate.interval().low.min() < 0.0), bool(limits.low.min() == 0.0)
        (True, True)
        """
        return replace(self, clipped=True)

    def project(self, method: str) -> FrequencyEstimate:
        """Post-process the estimate into a distribution.

        It costs no privacy, removes impossible values, and introduces bias. The result names the
        method in :attr:`postprocessing`, and keeps the standard errors and intervals of the
        original.

        Parameters
        ----------
        method
            ``"simplex"``: the nearest distribution. ``"norm_sub"``: sets negatives to zero, and
            shifts the rest until the sum is one; it equals ``"simplex"`` if the positive estimates
            add up to one or more. ``"clip_normalize"``: sets negatives to zero, and divides the
            rest by the sum. ``"none"``: the estimate before post-processing.

        Returns
        -------
        FrequencyEstimate
            The post-processed estimate, always computed from the original.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If ``"clip_normalize"`` finds no positive estimate.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.DirectEncoding(0.5, 4).simulate([500, 500, 0, 0], seed=3)
        >>> float(tally.estimate().project("simplex").frequencies.sum().round(12))
        1.0
        """
        _arguments.choice("method", method, ("none", *PROJECTIONS))
        if method == "none":
            return self._unprojected
        return self._made(PROJECTIONS[method](self.estimation.frequencies), method)

    def shrink(self) -> FrequencyEstimate:
        """Shrink the answers towards each other as much as they are alike: empirical Bayes.

        With many answers, their common features say much about each. The result is a distribution
        of posterior means under priors learned from all answers, averaged by the evidence for each
        prior. The result is biased. It names the method in :attr:`postprocessing`;
        :attr:`shrinkage` says how it came about and where it may mislead. Intervals stay those of
        the original, and :meth:`interval` has ``"empirical_bayes"``.

        The gain is over all answers together, not for each one. Compared with the best projection,
        in ten populations, the root mean square error was about half as large (geometric mean) with
        100 to 300 answers, four tenths with 2,000, and three quarters with 10; the worst ratios are
        in :doc:`/topics/shrinkage`.

        Returns
        -------
        FrequencyEstimate
            The shrunken estimate, always computed from the original.

        Raises
        ------
        EstimatorError
            If the estimator is biased, or a standard error is not known.

        Examples
        --------
        >>> import turnout as tn
        >>> truth = [0.01] * 100
        >>> estimate = tn.SubsetSelection(1.0, 100).simulate([500] * 100, seed=1).estimate()
        >>> shrunken, projected = estimate.shrink(), estimate.project("simplex")
        >>> shrunken.distance(truth) < 0.2 * projected.distance(truth)
        True
        >>> list(shrunken.shrinkage.weights)[0]
        'one atom'
        """
        self._check_shrinkable()
        found, how = shrunk(self.estimation.frequencies, self.estimation.variances)
        return self._made(found, SHRUNK, how)

    def _check_shrinkable(self) -> None:
        estimation = self.estimation
        if estimation.bias is not None:
            raise EstimatorError(f"{self.method!r} cannot be shrunk: {estimation.bias}")
        if not np.isfinite(estimation.variances).all():
            raise EstimatorError(
                f"{self.method!r} cannot be shrunk: standard errors are needed of all answers, and "
                f"{int((~np.isfinite(estimation.variances)).sum())} are not known; project it"
            )

    def _columns_of(
        self,
        codes: Integers | slice = slice(None),
        level: float = 0.95,
        simultaneous: str | None = None,
    ) -> Columns:
        """Return the results for some answers as columns.

        Parameters
        ----------
        codes
            The codes of the answers; by default all.
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        Columns
            Labels and arrays; limits are nan if they do not exist or are infinite.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or not one of the allowed values.
        """
        level = checked_level(level, simultaneous)
        frequencies = self.frequencies[codes]
        low = high = np.full(frequencies.shape, np.nan)
        if self.estimation.bias is None:
            interval = self._interval(level, "auto", simultaneous, codes)
            known = np.isfinite(interval.low) & np.isfinite(interval.high)
            low, high = (np.where(known, each, np.nan) for each in (interval.low, interval.high))
        if isinstance(codes, slice):
            labels: Sequence[Any] = self.domain._sequence[codes]
        else:
            labels = self.domain.decode(codes)
        errors = self.standard_errors[codes]
        return Columns(labels, frequencies * self.nodes, frequencies, errors, low, high)

    def plot(
        self,
        truth: Any = None,
        *,
        ax: Axes | None = None,
        level: float = 0.95,
        simultaneous: str | None = None,
    ) -> Axes:
        """Draw the frequencies with error bars, and the truth if it is known.

        Parameters
        ----------
        truth
            One true frequency for each answer, if known.
        ax
            Matplotlib axes to draw on; new ones by default.
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If the truth has the wrong size.

        Examples
        --------
        >>> import turnout as tn
        >>> axes = tn.DirectEncoding(1.0, 3).simulate([10, 20, 70]).estimate().plot([0.1, 0.2, 0.7])
        >>> axes.get_ylabel()
        'share of all people'
        """
        return plot_estimate(self, truth, ax, level, simultaneous)

    def __repr__(self) -> str:
        """Show the first answers."""
        shown = ", ".join(
            f"{label!r}: {frequency:.4g} ± {error:.2g}"
            for _, label, frequency, error in zip(
                range(4), self.domain.labels, self.frequencies, self.standard_errors, strict=False
            )
        )
        more = ", ..." if self.domain.size > 4 else ""
        named = ""
        if self.postprocessing != "none":
            verb = "shrunk" if SHRUNK in self.postprocessing else "projected"
            named = f", {verb} by {self.postprocessing!r}"
        return f"{type(self).__name__}({self.method!r}{named}, {{{shown}{more}}})"


def shrunk_across(estimates: Sequence[FrequencyEstimate]) -> list[FrequencyEstimate]:
    """Shrink estimates of the same answers in different groups, using all groups."""
    for estimate in estimates:
        estimate._check_shrinkable()
    if not estimates:
        return []
    found = shared(
        np.array([each.estimation.frequencies for each in estimates]),
        np.array([each.estimation.variances for each in estimates]),
    )
    return [
        each._made(made, ACROSS, how) for each, (made, how) in zip(estimates, found, strict=True)
    ]


def _read_only(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view
