"""The second round, in which the participation rate depends on the answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._rounding import logarithm_up
from turnout._seeds import derived
from turnout._types import Array, Floats, Integers
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.collecting.randomizer import Counts, Drawn, Noise, common_rate
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.projection import PROJECTIONS
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.tally import Tally
from turnout.frequency.wrapped import WrappedOracle
from turnout.participation import Everyone, Participation


def rates_for_rare(frequencies: Any, *, rate: float, low: float, high: float) -> Floats:
    """Return rates in inverse proportion to the frequencies of answers, within limits.

    ``pi_x = clip(s / f_x, low, high)`` with the ``s`` for which ``sum f_x pi_x = rate``, so
    that the expected share of nodes that report is ``rate`` if the frequencies are true.

    Parameters
    ----------
    frequencies
        One estimated frequency for each answer; made a distribution by ``"norm_sub"``.
    rate
        The desired share of nodes that report, from ``low`` to ``high``.
    low, high
        The limits of the rates, in (0, 1].

    Returns
    -------
    numpy.ndarray
        One rate for each answer, float64.

    Raises
    ------
    InvalidValueError
        If the limits or the rate are not in order.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> rates_for_rare([0.8, 0.16, 0.04], rate=0.1, low=0.05, high=0.5).round(4)
    array([0.05, 0.25, 0.5 ])
    """
    least = _arguments.probability("low", low)
    most = _arguments.probability("high", high)
    target = _arguments.probability("rate", rate)
    if not least <= target <= most:
        raise InvalidValueError(
            f"rate must be from low = {least} to high = {most}, got {target}: no "
            "rates within these limits have this mean"
        )
    given = np.asarray(frequencies, dtype=np.float64)
    given = _arguments.frequencies("frequencies", frequencies, given.size)
    shares = PROJECTIONS["norm_sub"](given)
    # In logarithms, from the rarest answer on: s / f overflows for frequencies near 0.
    with np.errstate(divide="ignore"):
        weights = -np.log(shares)
    some = np.isfinite(weights)
    start = np.log(least) - weights[some].max() - 1.0
    stop = np.log(most) - weights[some].min() + 1.0

    def rates(shift: float) -> Floats:
        clipped = np.clip(weights + shift, np.log(least), np.log(most))
        result: Floats = np.clip(np.exp(clipped), least, most)
        return result

    for _ in range(100):
        middle = 0.5 * (start + stop)
        if float(shares @ rates(middle)) < target:
            start = middle
        else:
            stop = middle
    return rates(start)


def second_round_ratios(ratio: Fraction, rates: npt.ArrayLike) -> tuple[Fraction, Fraction]:
    """Compute the exact likelihood ratios of a node's report and silence in the second round.

    Parameters
    ----------
    ratio
        The largest likelihood ratio of a report of the randomizer under two answers.
    rates
        The probability of taking part for each answer, in (0, 1].

    Returns
    -------
    tuple of Fraction
        The largest ratio of a report, and that of silence.

    Raises
    ------
    InvalidValueError
        If some answers are always reported and others are not: then silence excludes the former,
        and no epsilon bounds that.

    Notes
    -----
    A report y has probability ``pi_x P(y | x)``, silence ``1 - pi_x``. The largest ratios
    are ``(max pi / min pi) ratio`` and ``(1 - min pi) / (1 - max pi)``; either may be the larger.

    Examples
    --------
    >>> report, silence = second_round_ratios(Fraction(3), [0.25, 0.5])
    >>> report, silence
    (Fraction(6, 1), Fraction(3, 2))
    """
    array = np.asarray(rates, dtype=np.float64)
    least, most = Fraction(float(array.min())), Fraction(float(array.max()))
    if most == 1 and least < 1:
        raise InvalidValueError(
            f"rates must all be below 1, got {float(least)} and 1.0 beside each "
            "other: a person who stays silent cannot hold the answer with rate 1"
        )
    silence = Fraction(1) if most == least else (1 - least) / (1 - most)
    return most / least * ratio, silence


class SecondTally(Tally):
    """The number of second-round reports that support each answer, and of nodes asked.

    ``nodes`` are those that were asked, reporting or not.
    """

    _default_method: ClassVar[str] = "horvitz_thompson"

    @property
    def round(self) -> SecondRound:
        """The round."""
        made: SecondRound = self.plan.oracle
        return made

    def estimate(self, method: str = "horvitz_thompson") -> FrequencyEstimate:
        """Estimate the frequencies among the nodes that were asked, without bias.

        Parameters
        ----------
        method
            ``"horvitz_thompson"``: each answer is weighted by the rate of the nodes that hold it.

        Returns
        -------
        FrequencyEstimate
            Frequencies with standard errors and normal intervals.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If nobody was asked.

        Examples
        --------
        >>> import turnout as tn
        >>> second = SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=[0.2, 0.25, 0.3])
        >>> tally = second.collect([0] * 6000 + [1] * 3000 + [2] * 1000, seed=1)
        >>> tally.estimate().interval(0.999).contains([0.6, 0.3, 0.1])
        array([ True,  True,  True])
        """
        _arguments.choice("method", method, ("horvitz_thompson",))
        if self.nodes == 0:
            raise EstimatorError("nobody was asked in the second round")
        found = self.round._estimation(self)
        return FrequencyEstimate._from_estimation(
            self.plan, method, self.nodes, self.received, found, left_out=self.left_out
        )


class SecondRound(WrappedOracle):
    """Report through an oracle or stay silent, with a probability that depends on the answer.

    A node that holds ``x`` takes part with probability ``pi_x``. The probabilities of the answers
    are public. The one that a node used reveals its answer, so reports do not contain it. It is
    visible who sends and who stays silent: :attr:`realized_ratio` covers both.
    :meth:`TwoRoundCollection.second_round` returns it. Its plan is served like any other; a silent
    device sends nothing.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, or of silence, in nats.
    domain
        The answers.
    oracle
        The randomizer of codes, as many as the domain has, or its description.
    rates
        The probability of taking part for each answer, in [2^-30, 1].

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If the arguments do not fit each other, or participation reveals more than ``epsilon``
        allows.

    Examples
    --------
    >>> import turnout as tn
    >>> second = SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=[0.2, 0.25, 0.3])
    >>> plan = tn.Plan(second, tn.Everyone())
    >>> sent = [plan.report(1, seed=number) for number in range(100)]
    >>> messages = [message for message in sent if message is not None]
    >>> 10 < len(messages) < 40, plan.gather(messages, nodes=100).nodes
    (True, 100)
    """

    name = "second_round"
    tally_type = SecondTally
    #: Silence has a likelihood of its own.
    _two_valued = False
    silent = True
    _one_rate_because = "each node's probability already depends on its answer"
    _asked_of = "those of the second round alone: see who was asked in the first"

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        oracle: FrequencyOracle | dict[str, Any],
        rates: npt.ArrayLike,
    ) -> None:
        super().__init__(epsilon, domain, oracle)
        inner = self._inner
        if inner._support_dtype.kind != "u":
            raise InvalidValueError(
                f"oracle must count the reports that support an answer, got {inner.name}, whose "
                "reports hold scores"
            )
        if not inner.fresh or isinstance(inner, WrappedOracle):
            raise _arguments.invalid("oracle must draw reports of single answers afresh", inner)
        if inner.domain.size != self._domain.size:
            raise InvalidValueError(
                f"oracle must be of {self._domain.size} codes, as the domain, got "
                f"{inner.domain.size}"
            )
        self._rates = _arguments.frequencies("rates", rates, self._domain.size).copy()
        wrong = ~((self._rates >= 2.0**-30) & (self._rates <= 1.0))
        _arguments.refuse_entries("rates", self._rates, wrong, "in [2^-30, 1]")
        self._rates.flags.writeable = False
        #: The largest likelihood ratio of a report, and that of silence, exactly.
        self._ratios = second_round_ratios(inner.realized_ratio, self._rates)
        if self.realized_epsilon > self._epsilon:
            raise _arguments.invalid(
                f"epsilon must be at least {self.realized_epsilon!r}, "
                "what a report or silence says",
                self._epsilon,
            )

    @property
    def rates(self) -> Floats:
        """The probability of taking part for each answer; read-only, realised exactly."""
        return self._rates

    @property
    def by_blocks(self) -> bool:  # type: ignore[override]
        """Whether the reports of a block of nodes can be drawn by themselves."""
        return self._inner.by_blocks

    @property
    def realized_ratio(self) -> Fraction:
        """The larger of the two ratios."""
        return max(self._ratios)

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return logarithm_up(self.realized_ratio)

    @property
    def variation_ratio(self) -> VariationRatio:
        """That of the worst randomizer with the same ratio."""
        return VariationRatio._of_any(self.realized_ratio)

    @property
    def _told_apart(self) -> ToldApart | None:
        """None: how many reports there are depends on the answers."""
        return None

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Refused: how likely a node supports an answer depends on the rate of its own.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "oracle must support each answer alike: of a second round, whose rates depend on the "
            "answer, the tally estimates"
        )

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"oracle": self._inner.to_dict(), "rates": self._rates.tolist()}

    def _refuse_counting(self) -> None:
        """Refuse to be counted by a database: a count does not say how many were asked.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "a second round is counted from its reports: who sends one depends on the answer"
        )

    def _reporters(self, answers: Array, participation: Participation, noise: Noise) -> Integers:
        """Return which nodes send the reports: see :class:`turnout.collecting.kind.Kind`."""
        asked = _core.participants(len(answers), common_rate(participation), noise)
        rates = self._rates[answers[asked]]
        return asked[_core.participants(len(asked), rates, derived(noise, 2))]

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize codes: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        self._domain._check_codes("values", answers)
        kept = answers[self._reporters(answers, participation, noise)]
        # How likely each of them took part would tell the answer: reports come without it.
        return self._inner.draw_reports(kept, Everyone(), derived(noise, 3))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return self.count_reports(self.draw_reports(answers, participation, noise).reports)

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw from true counts: see :meth:`turnout.collecting.kind.Kind.draw_from_counts`."""
        generator = np.random.default_rng(None if seed is None else [seed, 1])
        asked = counts.astype(np.int64)
        if rate < 1.0:
            asked = generator.binomial(asked, rate)
        present = generator.binomial(asked, self._rates)
        tally = self._inner.simulate(present, seed=seed)
        return Counts(tally.support, tally.received)

    def _counts(self, tally: SecondTally) -> Floats:
        """Estimate how many of the nodes asked hold each answer, without bias.

        ``F_i = (C(i) - q S) / ((p - q) pi_i)`` from the support ``C`` and the number ``S`` of
        reports: ``E C(i) = q sum_x F_x pi_x + (p - q) F_i pi_i``. Where not all
        of those asked take part, the rate multiplies ``pi``.
        """
        p, q = self._inner.support_probabilities
        rates = self._rates * common_rate(tally.participation)
        result: Floats = (tally.support - tally.received * q) / ((p - q) * rates)
        return result

    def _variance_of(self, held: Floats, present: float, rate: float = 1.0) -> Floats:
        """Return the exact variance of :meth:`_counts`.

        Parameters
        ----------
        held
            How many of the nodes asked hold each answer.
        present
            How many of them would take part by their answers: ``held @ rates`` in the mean.
        rate
            How many of those who would do take part.

        Returns
        -------
        numpy.ndarray
            One variance for each answer, float64, in squared nodes.

        Notes
        -----
        A node that holds x contributes to ``C(i) - q S`` a term with mean ``pi_x (r - q)`` and mean
        square ``pi_x (r (1 - 2q) + q^2)``, where ``r`` is p if x = i and q otherwise.
        """
        p, q = self._inner.support_probabilities
        d, pi = p - q, self._rates
        # What a holder of the answer contributes, and how many others send a report.
        square = pi * (p * (1 - 2 * q) + q * q)
        others = present - held * pi
        noise = rate * others * q * (1 - q) + held * (rate * square - (rate * pi * d) ** 2)
        result: Floats = noise / (rate * d * pi) ** 2
        return result

    def _estimation(self, tally: SecondTally) -> Estimation:
        """Estimate the frequencies among the nodes asked, with their law."""
        rate, asked = common_rate(tally.participation), tally.nodes
        frequencies = self._counts(tally) / asked
        present = tally.received / rate

        def variances(shares: Floats) -> Floats:
            held = np.clip(shares, 0.0, 1.0) * asked
            found = self._variance_of(held, present, rate) / asked**2
            return np.maximum(found, 0.0)

        plain = variances(frequencies)
        # Drawn up by two reports: an answer that nobody reports has some variance too.
        cautious = variances(np.clip(frequencies, 0.0, 1.0) + 2.0 / (asked * rate * self._rates))
        return Estimation(frequencies, plain, interval_variances=np.maximum(plain, cautious))

    def __repr__(self) -> str:
        """Show the oracle and the range of the rates."""
        low, high = self._rates.min(), self._rates.max()
        return (
            f"SecondRound(epsilon={self._epsilon!r}, {self._domain!r}, {self._inner.name}, rates "
            f"{low:.4g} to {high:.4g})"
        )
