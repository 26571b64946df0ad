"""Padded reports: some are about the own answer, the others about a uniform one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._seeds import derived
from turnout._types import Array
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.collecting.randomizer import Counts, Drawn, Noise
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.draws import weighted_choices
from turnout.frequency.estimation.models import ScoreMoments
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.wrapped import WrappedOracle
from turnout.participation import Participation

_SCALE = 2**62


class PaddedOracle(WrappedOracle):
    """Report the own answer with probability ``own_probability``, and a uniform answer otherwise.

    Either answer goes through the same randomizer, so nobody can tell which it was. This is the law
    of one attribute of :class:`SampledAttribute` under padding. Let ``r`` be ``own_probability``,
    and ``u = q* + (p* - q*) / k`` the probability that a report of a uniform answer supports a
    given answer. A report supports the own answer with probability ``r p* + (1 - r) u``, and any
    other fixed answer with ``r q* + (1 - r) u``. So the protocol is pure, and every estimator,
    variance and interval applies.

    Parameters
    ----------
    epsilon, domain
        Those of ``oracle``.
    oracle
        The randomizer, or its description.
    own_probability
        The probability that a report is about the own answer, in (0, 1].

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, the oracle is padded itself, or
        ``epsilon`` and ``domain`` are not those of the oracle.

    Notes
    -----
    The realised ratio is that of the inner oracle, which the reports of *all* attributes together
    reach, whichever was sampled. A single padded report reveals less, but is sent with the others.

    Examples
    --------
    >>> import turnout as tn
    >>> inner = tn.DirectEncoding(1.0, 3)
    >>> padded = PaddedOracle(1.0, 3, oracle=inner, own_probability=0.25)
    >>> [round(probability, 3) for probability in padded.support_probabilities]
    [0.394, 0.303]
    """

    name = "padded"

    #: What is fake has one likelihood under all answers.
    _two_valued = False

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        oracle: FrequencyOracle | dict[str, Any],
        own_probability: float,
    ) -> None:
        super().__init__(epsilon, domain, oracle)
        inner = self._inner
        if isinstance(inner, PaddedOracle):
            raise _arguments.invalid("oracle must not be padded itself", inner)
        self._own_probability = _arguments.probability("own_probability", own_probability)
        if (inner.epsilon, inner.domain) != (self._epsilon, self._domain):
            raise InvalidValueError(
                f"epsilon and domain must be those of the oracle {inner!r}, got "
                f"{self._epsilon!r} and {self._domain!r}"
            )
        self._real = max(int(Fraction(self._own_probability) * _SCALE), 1)

    @property
    def own_probability(self) -> float:
        """The probability that a report is about the own answer."""
        return self._own_probability

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """``(p*, q*)``: how likely a report supports the own answer, and any other fixed one."""
        return self._mixed(*self._inner.support_probabilities)

    @property
    def _score_moments(self) -> ScoreMoments:
        """What a report says about one answer: the inner oracle's moments, mixed alike."""
        scores = self._inner._score_moments
        return ScoreMoments(
            *self._mixed(scores.own, scores.other),
            *self._mixed(scores.own_second, scores.other_second),
        )

    def _mixed(self, own: float, other: float) -> tuple[float, float]:
        """Mix the moments of the own and of another answer with those of a uniform one."""
        uniform = other + (own - other) / self._domain.size
        real = self._own_probability
        fake = (1 - real) * uniform
        return real * own + fake, real * other + fake

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of the worst randomizer with the same likelihood ratio."""
        return VariationRatio._of_any(self.realized_ratio)

    @property
    def _told_apart(self) -> ToldApart | None:
        """None: a report comes with its siblings."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"oracle": self._inner.to_dict(), "own_probability": self._own_probability}

    def _padded(self, codes: Array, noise: Noise) -> Array:
        """Replace some answers by uniform ones."""
        size = self._domain.size
        self._domain._check_codes("values", codes)
        chosen = weighted_choices([_SCALE - self._real, self._real], codes.size, derived(noise, 0))
        fake = _core.uniform_integers(size, codes.size, derived(noise, 1))
        return np.where(chosen == 1, codes.astype(np.int64), fake)

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize codes: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        return super().draw_reports(self._padded(answers, noise), participation, noise)

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return super().draw_counts(self._padded(answers, noise), participation, noise)

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw from counts: see :meth:`turnout.collecting.kind.Kind.draw_from_counts`."""
        generator = np.random.Generator(np.random.Philox(derived(seed, 0)))
        size = self._domain.size
        real = generator.binomial(counts.astype(np.int64), self._real / _SCALE)
        fake = sum(counts.tolist()) - int(real.sum())
        mixed = real + generator.multinomial(fake, np.full(size, 1.0 / size))
        return super().draw_from_counts(mixed.astype(np.uint64), rate, seed)
