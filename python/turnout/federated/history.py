"""The history of a training, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import ESTIMATE, panels
from turnout._tables import Tabular
from turnout._types import Axes, Figure
from turnout.accounting import PrivacyLedger, compose
from turnout.accounting.ledger_entries import parts_of
from turnout.accounting.proofs import Parts
from turnout.errors import InvalidValueError

#: For how many rounds epsilon is computed, which takes a tenth of a second or more for each.
_COMPUTED = 20

#: The columns that every history has.
_FIRST = ("round", "available", "step", "epsilon")

#: These, and what the votes of a round tell.
_OWN = (*_FIRST, "clip", "clipped")


@dataclass
class _Row:
    number: int
    available: int
    step: bool
    #: What was spent, at which delta, for which neighbours; None without a ledger.
    spent: tuple[Parts, float, str] | None
    measured: dict[str, float] = field(default_factory=dict)


class History(Tabular):
    """The rounds of a training, with the epsilon spent and the measurements of the model.

    A server keeps one, :attr:`turnout.federated.Server.history`. It holds the rounds since the
    server was created, and not those before :meth:`~turnout.federated.Server.resume`.

    The numbers that turnout adds are public: they follow from the models, or the plan pays for
    them. The exception is a ``step`` that is False after an error of
    :class:`~turnout.federated.InProcessEngine`, which may depend on the data. No epsilon covers the
    measurements by ``evaluate`` of :meth:`turnout.federated.InProcessEngine.run` or of a training
    in Flower. Measure on public data, or show the history only to those who have the data.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
    >>> data = np.random.default_rng(0).normal(0.3, 0.1, size=(500, 2))
    >>> plan = RandomParticipationSGD(
    ...     0.5, 0.5, clip=1.0, epsilon=1.0, delta=1e-5, rounds=4, local_size=2, seed=1
    ... )
    >>> engine = InProcessEngine(
    ...     plan,
    ...     np.zeros(1),
    ...     lambda mean, client, elements: mean - data[client, elements][:, None],
    ...     sizes=2,
    ...     clients=500,
    ...     optimizer=SGD(0.5),
    ... )
    >>> model = engine.run(4, evaluate=lambda model: {"error": abs(float(model[0]) - 0.3)})
    >>> history = engine.server.history
    >>> for row in history.to_records():
    ...     print(row["round"], round(row["epsilon"], 3), round(row["error"], 2))
    1 0.634 0.16
    2 0.783 0.08
    3 0.9 0.03
    4 1.0 0.03
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._columns = _FIRST
        self._epsilons: dict[int, float] = {}

    def to_records(self) -> list[dict[str, Any]]:
        """Return a list of one dictionary for each round.

        Returns
        -------
        list of dict
            Each has ``round`` (the number of rounds of the training that were over, from 1),
            ``available``, ``step`` (False if the round was given up), ``epsilon``, and the
            measurements. A missing measurement is None. Epsilon is what the ledger had spent so far
            at its delta; None without a ledger. Under ``adaptive_clipping`` also ``clip``, and
            ``clipped``: the share of gradients longer than the clip according to their noisy votes.
            This share is too close to 1 - ``quantile`` if clients have fewer elements than the
            plan expects (:class:`~turnout.federated.AdaptiveClipping`). In a history of more than
            20 rounds epsilon is computed for 20 of them. The others have the epsilon of the next
            one, which is not less.
        """
        epsilons = self._spent()
        return [
            {
                "round": row.number,
                "available": row.available,
                "step": row.step,
                "epsilon": epsilons[place],
                **{name: row.measured.get(name) for name in self._columns[len(_FIRST) :]},
            }
            for place, row in enumerate(self._rows)
        ]

    def plot(self) -> Figure:
        """Plot the measurements and epsilon against the rounds.

        Returns
        -------
        matplotlib.figure.Figure
            A figure with a panel for each measured number, and one for epsilon if there is a
            ledger.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If there is nothing to plot.
        """
        records = self.to_records()
        drawn: dict[str, Callable[..., Any]] = {}
        for name in self._columns[len(_FIRST) - 1 :]:
            points = [
                (row["round"], row[name])
                for place, row in enumerate(records)
                # Of epsilon those for which it was computed.
                if row[name] is not None and (name != "epsilon" or place in self._epsilons)
            ]
            if any(math.isfinite(value) for _, value in points):
                ends = records[0]["round"], records[-1]["round"]
                drawn[name] = partial(_draw, points=points, ends=ends)
        if not drawn:
            raise InvalidValueError(
                "history must have a number to draw: a ledger, or what evaluate gives"
            )
        return panels(drawn, height=2.4)

    def _add(
        self,
        number: int,
        available: int,
        step: bool,
        ledger: PrivacyLedger | None,
        told: dict[str, float],
    ) -> None:
        """Add the round with which this many are over, with the result of its votes."""
        spent = None
        if ledger is not None:
            spent = (parts_of(ledger.entries), ledger.delta, ledger.adjacency)
        self._rows.append(_Row(number, available, step, spent, told))
        self._columns = (*self._columns, *(name for name in told if name not in self._columns))

    def _measure(self, found: Any) -> None:
        """Add measurements of the model after the last round."""
        for name, value in measurements(found).items():
            self._rows[-1].measured[name] = value
            if name not in self._columns:
                self._columns = (*self._columns, name)

    def _spent(self) -> list[float | None]:
        """Return the epsilon of each round, not below what was spent."""
        count = len(self._rows)
        chosen = sorted(
            {round(place) for place in np.linspace(0, count - 1, min(count, _COMPUTED))}
        )
        found: list[float | None] = [None] * count
        for first, place in zip([-1, *chosen], chosen, strict=False):
            spent = self._rows[place].spent
            if spent is not None and place not in self._epsilons:
                parts, delta, adjacency = spent
                self._epsilons[place] = compose(parts, adjacency).epsilon(delta)
            found[first + 1 : place + 1] = [self._epsilons.get(place)] * (place - first)
        return found

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Show the number of rounds and the names of the measurements."""
        names = ", ".join(self._columns[len(_FIRST) :]) or "nothing"
        return f"History({len(self._rows)} rounds, measured: {names})"


def measurements(found: Any) -> dict[str, float]:
    """Return what ``evaluate`` measured, checked; nothing if it returned None.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a dictionary of numbers by name, or a name is that of another column.

    Examples
    --------
    >>> measurements({"loss": 2, "accuracy": 0.25})
    {'loss': 2.0, 'accuracy': 0.25}
    """
    if found is None:
        return {}
    expected = "a dictionary of numbers by name, or None"
    _arguments.instance("evaluate", found, Mapping, f"a function that gives {expected}")
    for name in found:
        if not isinstance(name, str) or name in _OWN:
            raise _arguments.invalid(
                f"evaluate must name its numbers by texts other than {', '.join(_OWN)}", name
            )
    return {name: _arguments.number(f"evaluate: {name}", value) for name, value in found.items()}


def _draw(points: Sequence[tuple[int, float]], ends: tuple[int, int], *, ax: Axes) -> None:
    rounds, values = zip(*points, strict=True)
    finite = [value for value in values if math.isfinite(value)]
    first, last = ends
    marker = "o" if len(points) <= 30 else ""
    ax.plot(rounds, values, color=ESTIMATE, marker=marker, markersize=3.5, linewidth=1.4)
    ax.set_xlim(first - 0.5, max(last, first + 1) + 0.5)
    if min(finite) >= 0.0:
        ax.set_ylim(0.0, 1.08 * max(*finite, 1e-9))
    ax.set_xlabel("round")
    ax.locator_params(axis="x", integer=True)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(f"{values[-1]:.4g} after round {rounds[-1]}", loc="left")
