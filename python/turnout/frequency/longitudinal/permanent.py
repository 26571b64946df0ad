"""Permanent randomized answers, and their fresh reports in every round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._rounding import logarithm_up, rounded_up
from turnout._types import Array, Floats, Integers, Truths
from turnout.accounting.values import positive
from turnout.accounting.variation import VariationRatio
from turnout.collecting.randomizer import rates_of
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.improbable import rows_of_bits
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Participation, Personalized, taking_part_in

_DIRECT = "direct_encoding"
_UNARY = ("symmetric_unary_encoding", "optimized_unary_encoding")

#: What a permanent answer is drawn for: each different answer, or each phase.
PER = ("answer", "phase")

#: The most phases of a client.
MOST_PHASES = 10**6

#: The length of a client's secret, in bytes.
SECRET_BYTES = 32


class PermanentAnswers(FrequencyOracle):
    """The part of :class:`Memoized` without clients: both stages, their laws, and populations."""

    def __init__(
        self,
        oracle: FrequencyOracle | float,
        domain: Domain | Sequence[Hashable] | int | None = None,
        *,
        first_epsilon: float,
        instantaneous: str | None = None,
        permanent: str | None = None,
        question: str = "",
        permanent_per: str = "answer",
    ) -> None:
        if isinstance(oracle, FrequencyOracle):
            if domain is not None or permanent is not None:
                raise InvalidValueError(
                    "domain and permanent come from the oracle: pass them only with an epsilon"
                )
            permanent, domain, epsilon = oracle.name, oracle.domain, oracle.epsilon
        else:
            try:
                epsilon = _arguments.number("oracle", oracle)
            except InvalidTypeError as error:
                raise _arguments.mistyped(
                    "oracle must be an oracle, or an epsilon followed by a domain", oracle
                ) from error
            domain = domain_of("domain", domain)
            permanent = _DIRECT if permanent is None else permanent
        kinds = (_DIRECT, *_UNARY)
        if permanent not in kinds:
            raise _arguments.invalid(f"oracle must be one of {', '.join(kinds)}", permanent)
        matching = _UNARY if permanent in _UNARY else (_DIRECT,)
        second = permanent if instantaneous is None else instantaneous
        super().__init__(epsilon, domain)
        self._permanent = permanent
        self._instantaneous = _arguments.choice("instantaneous", second, matching)
        self._first = positive("first_epsilon", first_epsilon)
        self._question = _arguments.instance("question", question, str, "a text")
        self._per = _arguments.choice("permanent_per", permanent_per, PER)
        size = self._domain.size
        self._core: _core.MemoizedDirect | _core.MemoizedUnary
        if permanent == _DIRECT:
            self._core = _core.MemoizedDirect(size, self._epsilon, self._first)
        else:
            optimized = (permanent == _UNARY[1], second == _UNARY[1])
            self._core = _core.MemoizedUnary(size, self._epsilon, self._first, optimized)

    @property
    def first_epsilon(self) -> float:
        """The requested budget of one report, in nats."""
        return self._first

    @property
    def permanent(self) -> str:
        """The name of the oracle that makes the permanent answer."""
        return self._permanent

    @property
    def instantaneous(self) -> str:
        """The name of the oracle that randomizes the permanent answer in every round."""
        return self._instantaneous

    @property
    def question(self) -> str:
        """A word for the question."""
        return self._question

    @property
    def permanent_per(self) -> str:
        """What a permanent answer is drawn for: each different answer, or each phase."""
        return self._per

    def _stages(self) -> list[tuple[Fraction, Fraction]]:
        """Return the exact probabilities that each stage supports the own answer, and another."""
        if self._permanent == _DIRECT:
            others = self._domain.size - 1
            return [
                (Fraction(own, own + others * other), Fraction(other, own + others * other))
                for own, other in self._core.words
            ]
        return [(Fraction(one, 2**64), Fraction(zero, 2**64)) for one, zero in self._core.words]

    def _ratio(self, own: Fraction, other: Fraction) -> Fraction:
        ratio = own / other
        return ratio if self._permanent == _DIRECT else ratio * (1 - other) / (1 - own)

    def _through(self) -> tuple[Fraction, Fraction]:
        first, (own, other) = self._stages()
        return (
            first[0] * own + (1 - first[0]) * other,
            first[1] * own + (1 - first[1]) * other,
        )

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of one report under two answers."""
        return self._ratio(*self._through())

    @property
    def _lifetime_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of the permanent answer, and so of all reports."""
        return self._ratio(*self._stages()[0])

    @property
    def lifetime_epsilon(self) -> float:
        """The epsilon of all reports of an answer, rounded up; never above :attr:`epsilon`."""
        return self._core.lifetime_epsilon

    @property
    def _lifetime_variation_ratio(self) -> VariationRatio:
        """The variation ratio of the permanent answer, for shuffled reports.

        If every round is shuffled, all rounds together are a function of the shuffled permanent
        answers and of fresh noise, whoever takes part in which. So
        ``Shuffled(_lifetime_variation_ratio, nodes)`` of :mod:`turnout.accounting` holds for all
        reports of unchanged answers. It is not composed over rounds. The :attr:`variation_ratio` is
        that of a single round; rounds do not compose, since they share the permanent answer.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.accounting import Shuffled
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(tn.DirectEncoding(2.0, 4), first_epsilon=1.0)
        >>> shuffled = Shuffled(memoized._lifetime_variation_ratio, nodes=100_000)
        >>> round(shuffled.epsilon(1e-6), 2)
        0.04
        """
        own, other = self._stages()[0]
        return VariationRatio(self._lifetime_ratio, own - other, self._lifetime_ratio)

    @property
    def round_epsilon(self) -> float:
        """The epsilon that one more report may add between any two sequences of answers.

        It is that of the instantaneous stage alone, from the ratio of a report under two permanent
        answers, rounded up. :meth:`spent_by_reports` adds it up.
        """
        own, other = self._stages()[1]
        if self._permanent == _DIRECT:
            return logarithm_up(own / other)
        # Permanent answers may differ in every bit.
        bit = max(own / other, (1 - other) / (1 - own))
        return logarithm_up(bit**self._domain.size)

    def spent(self, values: int) -> float:
        """Return the epsilon of some permanent answers, given which reports share one.

        Parameters
        ----------
        values
            The number of permanent answers: of different answers, or of phases
            (:attr:`permanent_per`), however often each was reported.

        Returns
        -------
        float
            ``values`` times :attr:`lifetime_epsilon`, rounded up. It compares sequences of answers
            in which the *same* rounds share a permanent answer. By phase those are the sequences
            that change in the same rounds. By answer they also return in the same rounds: for
            (a, b, a) against (a, b, c), which change in the same rounds, this is **not** a bound.
            :meth:`spent_by_reports` is one for any two sequences.

        Raises
        ------
        InvalidValueError
            If the number is negative.

        Examples
        --------
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(1.0, 3, first_epsilon=0.5)
        >>> round(memoized.spent(2), 3)
        2.0
        """
        number = _arguments.integer("values", values, least=0)
        return rounded_up(number * Fraction(self.lifetime_epsilon))

    def spent_by_reports(self, reports: int) -> float:
        """Return the epsilon of some reports between any two sequences of answers.

        It holds for any answers and for any changes and returns, without knowledge of them.

        Parameters
        ----------
        reports
            The number of reports.

        Returns
        -------
        float
            :attr:`realized_epsilon` for one of them and :attr:`round_epsilon` for each other one,
            rounded up. It grows without limit: enough reports reveal when an answer changes.

        Raises
        ------
        InvalidValueError
            If the number is negative.

        Examples
        --------
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(1.0, 3, first_epsilon=0.5)
        >>> round(memoized.spent_by_reports(1), 3), round(memoized.spent_by_reports(45), 1)
        (0.5, 59.9)
        """
        number = _arguments.integer("reports", reports, least=0)
        more = max(0, number - 1) * Fraction(self.round_epsilon)
        return rounded_up(min(number, 1) * Fraction(self.realized_epsilon) + more)

    @property
    def fresh(self) -> bool:
        """False: all reports of one answer share the noise of the permanent answer."""
        return False

    @property
    def _permanent_covariances(self) -> tuple[float, float]:
        """The covariance of two reports of a node about its own answer, and about another.

        Of ``(1[report supports] - q*) / (p* - q*)``, where the answer is unchanged: ``r (1 - r) /
        (p1 - q1)^2`` with ``r`` the probability that the permanent answer supports it. If it has
        changed, the covariance is zero.
        """
        own, other = self._stages()[0]
        scale = (own - other) ** 2
        return float(own * (1 - own) / scale), float(other * (1 - other) / scale)

    @property
    def _permanent_context(self) -> bytes:
        """What permanent answers are of: :attr:`context`."""
        return self.context

    def _permanent_variances(self, coefficients: Floats, held: Floats) -> Floats:
        """Return the covariances of sums, which are the variances from the permanent answers."""
        p, q = (float(each) for each in self._stages()[0])
        squares, total = (coefficients**2).sum(axis=1), coefficients.sum(axis=1)
        own_squares, own = coefficients**2 @ held, coefficients @ held
        if self._permanent == _DIRECT:
            # One of the answers is supported: with the own one ``c_v`` the mean is q sum(c) + (p -
            # q) c_v, and the mean square the same of the squares.
            mean_squares = q * squares + (p - q) * own_squares
            spread = (q * total) ** 2 + 2 * q * (p - q) * total * own + (p - q) ** 2 * own_squares
            result: Floats = mean_squares - spread
        else:
            result = q * (1 - q) * (squares - own_squares) + p * (1 - p) * own_squares
        return result / (p - q) ** 2

    @property
    def stage_probabilities(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """``(p*, q*)`` of the permanent answer, and of a report given the permanent answer."""
        first, second = self._stages()
        return (float(first[0]), float(first[1])), (float(second[0]), float(second[1]))

    @property
    def report_bits(self) -> int:
        """The size of a report in bits."""
        size = self._domain.size
        return (size - 1).bit_length() if self._permanent == _DIRECT else size

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report."""
        return np.dtype(np.uint32 if self._permanent == _DIRECT else np.uint64)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report."""
        return () if self._permanent == _DIRECT else (-(-self._domain.size // 64),)

    def improbable(self, reports: Array) -> Truths:
        """Return which rows have far too many or too few ones for an honest node."""
        if self._permanent == _DIRECT:
            return super().improbable(reports)
        return rows_of_bits(reports, self._domain.size, float(self._through()[1]))

    @cached_property
    def context(self) -> bytes:
        """The 32 bytes that permanent answers depend on, besides secret and answer.

        They are the SHA-256 of what determines the permanent answer: its oracle, the realised
        probabilities, the domain, the question, and whether there is one for each phase. Neither
        ``first_epsilon`` nor the instantaneous stage is included: if you change them, the permanent
        answers stay. Each phase has its own context, derived from this one.
        """
        what = {
            "format": "turnout-permanent-answer",
            "version": 1,
            "permanent": self._permanent,
            "words": [str(word) for word in self._core.words[0]],
            "domain": self._domain.fingerprint,
            "question": self._question,
        }
        if self._per == "phase":
            what["permanent_per"] = self._per
        text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()

    def permanent_answers(
        self, values: Any, secrets: npt.ArrayLike, *, phases: npt.ArrayLike | None = None
    ) -> Array:
        """Derive the permanent answers of a population.

        Anyone who knows them knows more than all reports together can reveal.

        Parameters
        ----------
        values
            One answer for each node.
        secrets
            uint8 of shape (n, 32): one secret for each node.
        phases
            The number of the phase of each node, or one for all, from 0; the first if None. Only
            where permanent answers are drawn for phases (:attr:`permanent_per`).

        Returns
        -------
        numpy.ndarray
            One permanent answer for each node, in the shape of reports.

        Raises
        ------
        TurnoutError
            If an answer is not in the domain, there is not one secret for each node, or phases are
            not such numbers.
        """
        codes = self._domain.to_codes(values)
        array = np.ascontiguousarray(secrets)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != SECRET_BYTES:
            raise InvalidTypeError(
                f"secrets must be an array of uint8 of shape (n, {SECRET_BYTES}), got "
                f"{array.dtype} of shape {array.shape}"
            )
        if self._per == "answer":
            if phases is not None:
                raise InvalidValueError(
                    "phases must be None where a permanent answer is drawn for each answer, got "
                    f"{_arguments.shown(phases)}: they are for permanent_per='phase'"
                )
            return self._core.permanent(codes, array, self.context)
        numbers = _phases(phases, len(codes))
        made = np.empty((len(codes), *self.report_shape), self.report_dtype)
        for number in np.unique(numbers):
            chosen = numbers == number
            digest = hashlib.sha256(self.context + int(number).to_bytes(8, "little")).digest()
            made[chosen] = self._core.permanent(codes[chosen], array[chosen], digest)
        return made

    def report(
        self,
        permanent_answers: Array,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> Reports:
        """Return one round of reports of a population.

        Parameters
        ----------
        permanent_answers
            The result of :meth:`permanent_answers`.
        participation
            Who takes part in this round; everyone by default.
        seed
            For tests and simulations only. Pass a different one in each round, or the rounds are
            equal.

        Returns
        -------
        Reports
            Reports of this oracle, for :meth:`tally`.

        Raises
        ------
        TurnoutError
            If these are not permanent answers, or the participation does not fit them.

        Examples
        --------
        >>> import numpy as np
        >>> import turnout as tn
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(tn.DirectEncoding(5.0, 3), first_epsilon=2.0)
        >>> values = [0] * 6000 + [1] * 3000 + [2] * 1000
        >>> secrets = np.random.default_rng(1).integers(0, 256, (10_000, 32), np.uint8)
        >>> answers = memoized.permanent_answers(values, secrets)
        >>> tallies = [memoized.tally(memoized.report(answers, seed=day)) for day in range(3)]
        >>> tallies[0].estimate().frequencies.round(1)
        array([0.6, 0.3, 0.1])
        """
        taking_part = taking_part_in(participation)
        answers = np.ascontiguousarray(permanent_answers)
        if answers.dtype != self.report_dtype or answers.shape[1:] != self.report_shape:
            raise InvalidTypeError(
                f"permanent_answers must be of {self.report_dtype} with rows of shape "
                f"{self.report_shape}, got {answers.dtype} of shape {answers.shape}"
            )
        nodes, checked = len(answers), _arguments.seed(seed)
        reports, probabilities = self._core.instantaneous(answers, rates_of(taking_part), checked)
        if not isinstance(taking_part, Personalized):
            return Reports(self, taking_part, reports, nodes)
        design = DesignSums.of(taking_part.probabilities)
        return Reports(
            self, taking_part, reports, nodes, probabilities=probabilities, design=design
        )

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {
            "first_epsilon": self._first,
            "instantaneous": self._instantaneous,
            "permanent": self._permanent,
            "permanent_per": self._per,
            "question": self._question,
        }

    def __repr__(self) -> str:
        """Show the constructor that takes an epsilon."""
        others = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"Memoized({self._epsilon!r}, {self._domain!r}, {others})"


def _phases(phases: npt.ArrayLike | None, nodes: int) -> Integers:
    numbers = np.asarray(0 if phases is None else phases)
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (nodes,)):
        raise _arguments.mistyped(
            f"phases must be a whole number or one for each of the {nodes} nodes", phases
        )
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < MOST_PHASES:
        raise _arguments.invalid(f"phases must be from 0 to {MOST_PHASES - 1}", phases)
    return np.broadcast_to(numbers.astype(np.int64), (nodes,))
