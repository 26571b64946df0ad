"""Estimates of several attributes, by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from turnout import _arguments
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.tally import GroupedTally
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.estimate import AttributeEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.groups.estimate import GroupedEstimate
from turnout.products import Questions


class GroupedAttributeEstimate(BaseGroupedEstimate[AttributeEstimate]):
    """How often each answer to each question occurs in each group.

    Made by :meth:`turnout.GroupedTally.estimate`. ``estimate["DE"]["age"]`` is the
    :class:`turnout.FrequencyEstimate` of one question in one group.

    Parameters
    ----------
    tally
        What is estimated from.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    clipped
        Whether intervals are cut to [0, 1].

    Raises
    ------
    InvalidValueError
        If there is no such method.
    EstimatorError
        If the method does not apply to this participation.

    Examples
    --------
    >>> import turnout as tn
    >>> both = tn.SplitBudget(6.0, {"sex": ["f", "m"], "age": 4})
    >>> one = both.collect({"sex": ["f"] * 900, "age": [3] * 900}, seed=1)
    >>> estimate = tn.GroupedTally(["country"], {"DE": one, "FR": one}).estimate()
    >>> estimate["FR"]["sex"]["f"].frequency > 0.8
    True
    """

    __slots__ = ("_clipped",)

    _columns = ("nodes", "received", *AttributeEstimate._columns, "reason")

    def __init__(
        self, tally: GroupedTally[Any], method: str = "hajek", *, clipped: bool = False
    ) -> None:
        _arguments.choice("method", method, tuple(ESTIMATORS))
        self._clipped = clipped
        super().__init__(tally, method)

    def _estimated(self, tally: Any) -> AttributeEstimate:
        found = super()._estimated(tally)
        return found.clip_intervals() if self._clipped else found

    def clip_intervals(self) -> GroupedAttributeEstimate:
        """Cut intervals to [0, 1]: see :meth:`turnout.FrequencyEstimate.clip_intervals`."""
        return GroupedAttributeEstimate(self._tally, self._method, clipped=True)

    @property
    def domain(self) -> Questions:
        """The answers that can be given to all questions."""
        domain: Questions = self.plan.domain
        return domain

    @property
    def _domains(self) -> Mapping[str, Domain]:
        domains: Mapping[str, Domain] = self.plan.oracle.domains
        return domains

    def attribute(self, name: str) -> GroupedEstimate:
        """Give the estimates of one question: with pictures, series and comparisons of groups.

        Raises
        ------
        InvalidValueError
            If there is no such question.
        """
        _arguments.choice("name", name, tuple(self._domains))
        tallies = {key: tally[name] for key, tally in self._tally.items()}
        grouped = GroupedTally(self.names, tallies)
        return GroupedEstimate(grouped, self._method, clipped=self._clipped)

    def series(self, time: str | None = None) -> NoReturn:
        """Refuse: a series shows one question, which :meth:`attribute` gives.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "a series over time shows one question: estimate.attribute(name).series() has it, or "
            "group by columns without a time"
        )

    def plot(self, **options: Any) -> NoReturn:
        """Refuse: a picture of groups shows one question, which :meth:`attribute` gives.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "a picture of groups shows one question: estimate.attribute(name).plot() draws it"
        )

    def _entries(self) -> str:
        return f"{len(self._domains)} attributes each"

    def _entry_names(self) -> Sequence[Any]:
        return [(name, label) for name, domain in self._domains.items() for label in domain.labels]

    def _rows(
        self, estimate: AttributeEstimate, level: float, top: int | None
    ) -> list[dict[str, Any]]:
        return estimate.to_records(level, top=top)

    def _unknown(self, top: int | None) -> list[dict[str, Any]]:
        unknown = dict.fromkeys(("count", "frequency", "standard_error"), math.nan)
        return [
            {"attribute": name, "label": label, **unknown, "low": None, "high": None}
            for name, domain in self._domains.items()
            for label in domain.labels[:top]
        ]
