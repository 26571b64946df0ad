"""Keep the privacy budget of one person: what was granted and what was spent."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

from turnout import _arguments
from turnout._rounding import rounded_up
from turnout.accounting.values import positive
from turnout.errors import BudgetExceededError, InvalidValueError


class PrivacyBudget:
    """The privacy budget of one person: what was granted and what was spent.

    Releases about one person's data add up: m draws of epsilon each cost m epsilon (basic
    composition, which is exact for pure differential privacy of this kind). Sums are exact: ten
    draws of 0.1 cost what the ten doubles add up to, not a rounded number.

    One budget belongs to one person. Pass it to every sampler that is fitted on that person's data.
    A fit's own grant, ``budget_``, is separate. Pass a budget to the first draw of a fit, and it
    pays for all later draws of that fit.

    Parameters
    ----------
    epsilon
        The epsilon that is granted, above 0; infinite for simulations, where spending is counted
        and never refused.
    delta
        The delta that is granted, at least 0 and below 1.
    unit
        What is protected: ``"dataset"``, all data of the person, or ``"record"``, one record of
        them. Epsilons of different units do not add up, so a sampler with the other unit is
        refused.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    For many releases of (epsilon, delta) mechanisms, :class:`turnout.accounting.PrivacyLedger`
    composes more tightly. Threads may share a budget; a copy in another process is a separate
    budget.

    Examples
    --------
    >>> budget = PrivacyBudget(epsilon=1.0)
    >>> budget.spend(0.25, times=3)
    >>> budget.remaining
    0.25
    >>> budget.spend(0.5)
    Traceback (most recent call last):
    ...
    turnout.errors.BudgetExceededError: this costs epsilon = 0.5, and 0.25 of 1.0 is left
    """

    def __init__(self, epsilon: float, delta: float = 0.0, *, unit: str = "dataset") -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        if not self._epsilon > 0.0:
            raise _arguments.invalid("epsilon must be a number above 0", epsilon)
        self._delta = _arguments.number("delta", delta)
        if not 0.0 <= self._delta < 1.0:
            raise _arguments.invalid("delta must be a number of at least 0 and below 1", delta)
        self._unit = _arguments.choice("unit", unit, ("dataset", "record"))
        self._spent = Fraction(0)
        self._spent_delta = Fraction(0)
        self._lock = threading.Lock()

    @property
    def epsilon(self) -> float:
        """The epsilon that was granted."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The delta that was granted."""
        return self._delta

    @property
    def unit(self) -> str:
        """What is protected: ``"dataset"`` or ``"record"``."""
        return self._unit

    @property
    def spent(self) -> float:
        """The epsilon that was spent, rounded up to a float."""
        return rounded_up(self._spent)

    @property
    def spent_delta(self) -> float:
        """The delta that was spent, rounded up to a float."""
        return rounded_up(self._spent_delta)

    @property
    def remaining(self) -> float:
        """The epsilon that is left, rounded down to a float."""
        if math.isinf(self._epsilon):
            return math.inf
        return 0.0 - rounded_up(self._spent - Fraction(self._epsilon))

    @property
    def remaining_delta(self) -> float:
        """The delta that is left, rounded down to a float."""
        return 0.0 - rounded_up(self._spent_delta - Fraction(self._delta))

    def spend(self, epsilon: float, delta: float = 0.0, *, times: int = 1) -> None:
        """Spend on one or several equal releases, or refuse and spend nothing.

        Parameters
        ----------
        epsilon, delta
            What one release costs; epsilon is finite and above 0.
        times
            The number of releases.

        Raises
        ------
        BudgetExceededError
            If that is more than is left. Nothing is spent then.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        cost = positive("epsilon", epsilon)
        cost_delta = _arguments.number("delta", delta)
        count = _arguments.integer("times", times, least=0)
        if not 0.0 <= cost_delta < 1.0:
            raise InvalidValueError(f"delta must be at least 0 and below 1, got {cost_delta}")
        with self._lock:
            total = self._spent + count * Fraction(cost)
            total_delta = self._spent_delta + count * Fraction(cost_delta)
            times_ = "" if count == 1 else f"{_arguments.shown(count)} x "
            if not math.isinf(self._epsilon) and total > Fraction(self._epsilon):
                raise BudgetExceededError(
                    f"this costs epsilon = {times_}{cost!r}, and {self.remaining:.6g} of "
                    f"{self._epsilon!r} is left"
                )
            if not math.isinf(self._epsilon) and total_delta > Fraction(self._delta):
                raise BudgetExceededError(
                    f"this costs delta = {times_}{cost_delta!r}, and "
                    f"{self.remaining_delta:.6g} of {self._delta!r} is left: "
                    "PrivacyBudget(epsilon, delta) grants both"
                )
            self._spent, self._spent_delta = total, total_delta

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        delta = f", delta={self._delta!r}" if self._delta else ""
        unit = "" if self._unit == "dataset" else f", unit={self._unit!r}"
        return f"PrivacyBudget(epsilon={self._epsilon!r}{delta}{unit}): {self.spent:.6g} spent"
