"""Two rounds: their parameters, the rates of the second, and what both spend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._rounding import logarithm_up, rounded_down
from turnout._types import Floats
from turnout.collecting.plan import Plan
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError
from turnout.frequency.adaptive.rates import Spending, rates_for_rare, second_round_ratios
from turnout.frequency.adaptive.second import SecondRound
from turnout.frequency.choice import checked_oracle, named_oracle, registered
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Everyone, Participation

MakeOracle = Callable[[float, Domain], FrequencyOracle]


class TwoRoundParameters:
    """What is asked in two rounds, and how; checked. See :class:`TwoRoundCollection`."""

    def __init__(
        self,
        domain: Domain | Sequence[Hashable] | int,
        *,
        epsilon: float,
        first_rate: float,
        second_rate: float,
        low: float,
        high: float,
        once: bool = True,
        share: float = 0.5,
        hidden: bool = False,
        power: float = 1.0,
        oracle: MakeOracle | str | None = None,
    ) -> None:
        if isinstance(oracle, str):
            known = registered()
            _arguments.choice("oracle", oracle, tuple(known))
            oracle = known[oracle]
        if oracle is None:
            oracle = DirectEncoding
        if not callable(oracle):
            raise _arguments.mistyped(
                "oracle must be a name or callable with an epsilon and a domain", oracle
            )
        self.oracle_maker = oracle
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._first_rate = _arguments.probability("first_rate", first_rate)
        self._second_rate = _arguments.probability("second_rate", second_rate)
        self._low = _arguments.probability("low", low)
        self._high = _arguments.probability("high", high)
        self._once = _flag("once", once)
        self._hidden = _flag("hidden", hidden)
        self._power = power
        self._share = share
        if self._low > self._high:
            raise InvalidValueError(f"low must be at most high = {high}, got {low}")
        if self._once and self._first_rate == 1.0:
            raise InvalidValueError(
                "first_rate must be below 1 where nobody reports twice: nobody is left to ask"
            )
        first_epsilon = self._epsilon
        if not self._once:
            first_epsilon *= _arguments.confidence("share", share)
        answers = domain_of("domain", domain)
        made = oracle(first_epsilon, answers)
        self._first_oracle = checked_oracle("oracle", made, first_epsilon, answers)
        self._check_second()

    def _check_second(self) -> None:
        """Refuse what would fail in the second round, before the first has cost anything."""
        size = self.domain.size
        target = self._target
        if target > 1.0:
            raise InvalidValueError(
                f"second_rate must be at most {1.0 - self._first_rate:.6g}, the share of nodes "
                f"that are left, got {self._second_rate}"
            )
        high = self._highest
        if not self._low <= target <= high:
            part = self._second_rate / target
            lowered = "" if high == self._high else ", the largest at which silence fits in epsilon"
            raise InvalidValueError(
                f"second_rate must be from {self._low * part:.6g} to {high * part:.6g}: the mean "
                f"of rates from low = {self._low} to {high:.6g}{lowered}; got {self._second_rate}"
            )
        rates_for_rare(
            np.full(size, 1 / size), rate=target, low=self._low, high=high, power=self._power
        )
        self._round(np.append(np.full(size - 1, self._low), high))

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._first_oracle.domain

    @property
    def epsilon(self) -> float:
        """The total budget that was asked for."""
        return self._epsilon

    @property
    def first_oracle(self) -> FrequencyOracle:
        """The randomizer of the first round."""
        return self._first_oracle

    @property
    def first_participation(self) -> Participation:
        """Who takes part in the first round."""
        return Everyone() if self._first_rate == 1.0 else Bernoulli(self._first_rate)

    @property
    def once(self) -> bool:
        """Whether a node reports in one round at most."""
        return self._once

    @property
    def _target(self) -> float:
        """The mean rate among the nodes asked in the second round."""
        return self._second_rate / (1.0 - self._first_rate if self._once else 1.0)

    @property
    def _left(self) -> float:
        """What the second round may spend."""
        if self._once:
            return self._epsilon
        spent = Fraction(self._first_oracle.realized_epsilon)
        return rounded_down(Fraction(self._epsilon) - spent)

    @property
    def _highest(self) -> float:
        """The upper limit of the rates, lowered so that silence stays within the budget."""
        if self._hidden or self._low == self._high:
            return self._high
        # (1 - low) / (1 - high) <= e^left, with a margin for rounding; the realised ratio is
        # checked in exact numbers.
        most = 1.0 - (1.0 - self._low) * float(np.exp(-self._left)) * (1.0 + 1e-9)
        return max(self._low, min(self._high, most))

    def second_round(self, first: Tally) -> SecondRound:
        """Decide on the second round, from what the first gave.

        Parameters
        ----------
        first
            The tally of :attr:`first_oracle` under :attr:`first_participation`; or, where nobody
            reports twice, that of the group alone that was asked first, of whom everyone reports.

        Returns
        -------
        SecondRound
            Rates and randomizer.

        Raises
        ------
        PlanMismatchError
            If the tally was made under another plan.
        EstimatorError
            If the first round has no reports.
        InvalidTypeError
            If ``first`` is not a tally.
        """
        self.check_first(first)
        rates = rates_for_rare(
            first.estimate().frequencies,
            rate=self._target,
            low=self._low,
            high=self._highest,
            power=self._power,
        )
        return self._round(rates)

    def check_first(self, first: Any) -> None:
        """Refuse what is no tally of the first round."""
        _arguments.instance("first", first, Tally, "a Tally")
        if self._once and first.participation.uniform_rate == 1.0:
            Plan(self._first_oracle, Everyone()).check_same(first.plan, "first")
        else:
            Plan(self._first_oracle, self.first_participation).check_same(first.plan, "first")

    def spending(self, second: SecondRound) -> Spending:
        """Tell what both rounds spend.

        Parameters
        ----------
        second
            What :meth:`second_round` decided on.

        Returns
        -------
        Spending
            The total, and its parts.
        """
        report, silence = second.ratios
        return Spending(
            self._first_oracle.realized_epsilon,
            second.oracle.realized_epsilon,
            logarithm_up(report),
            logarithm_up(silence),
            self._once,
        )

    def _round(self, rates: Floats) -> SecondRound:
        """Find the randomizer that the budget leaves, and prove in exact numbers that it fits."""
        least, most = float(rates.min()), float(rates.max())
        left, hidden = self._left, self._hidden
        domain = Domain.from_integers(self.domain.size + hidden)
        if hidden:
            epsilon = float(np.log1p(np.expm1(left) / most))
        else:
            epsilon = left - float(np.log(most / least))
        step = 0.0
        while epsilon - step > 0.0:
            oracle = self.oracle_maker(epsilon - step, domain)
            report, silence = second_round_ratios(oracle.realized_ratio, rates, hidden=hidden)
            if logarithm_up(max(report, silence)) <= left:
                made = SecondRound(left, self.domain, oracle=oracle, rates=rates, hidden=hidden)
                if self.spending(made).total <= self._epsilon:
                    return made
            if logarithm_up(silence) > left:
                break
            step = 2.0 * step + 1e-15 * self._epsilon
        raise InvalidValueError(
            f"low and high must leave something of the budget: rates from {least:.4g} to "
            f"{most:.4g} alone spend {float(np.log(most / least)):.4g} of {left:.4g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Name the arguments of the constructor, in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If what randomizes is no oracle of turnout, which has a name, or a label of the domain
            cannot be written to a file.
        """
        return {
            "domain": self.domain.to_dict(),
            "epsilon": self._epsilon,
            "first_rate": self._first_rate,
            "second_rate": self._second_rate,
            "low": self._low,
            "high": self._high,
            "once": self._once,
            "share": self._share,
            "hidden": self._hidden,
            "power": self._power,
            "oracle": named_oracle("oracle", self.oracle_maker),
        }

    def __repr__(self) -> str:
        """Show the budget and the rates."""
        return (
            f"TwoRoundCollection({self.domain!r}, epsilon={self._epsilon!r}, "
            f"first_rate={self._first_rate!r}, second_rate={self._second_rate!r}, "
            f"low={self._low!r}, high={self._high!r}, once={self._once!r})"
        )


def _flag(argument: str, value: Any) -> bool:
    _arguments.instance(argument, value, (bool, np.bool_), "True or False")
    return bool(value)
