"""Shuffled reports: the privacy that hiding in the crowd adds to local privacy."""

from __future__ import annotations

import dataclasses
import inspect
import math
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.loss_grid import Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import Divergence, Reached, nonnegative, shaped
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.participation import Bernoulli, Everyone, Participation, stated_participation

#: Beyond this e^epsilon may overflow, and nothing is counted.
_LARGEST_EPSILON = 700.0

#: What is taken from lower values for rounding, relatively.
_SLACK = 1e-6


@dataclasses.dataclass(frozen=True)
class TwoSets:
    """Data in which one node's report is in one of two sets, and others are in both alike."""

    nodes: int
    own: float
    other: float
    third: float

    @property
    def name(self) -> str:
        """The data in words."""
        return f"{self.nodes - 1:,} other nodes that all hold a third answer"

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate the divergence at epsilons of at least 0."""
        # All reports outside of the two sets look alike.
        own, other = self.own, self.other
        law = (own, other, own - other, max(0.0, 1.0 - own - other), self.third, 1.0)
        known = Divergence(*_core.shuffled(np.ascontiguousarray(epsilon), self.nodes, law).T)
        return known._replace(delta=np.maximum(0.0, known.delta * (1.0 - _SLACK) - 2e-11))


def _counted(epsilon: float, nodes: int, own: float, other: float) -> float:
    """Count one set, where all other nodes hold the answer that the set does not support."""
    if epsilon > _LARGEST_EPSILON:
        return 0.0
    # Nothing else needs it, and it takes longer to import than all of turnout.
    from scipy import special  # noqa: PLC0415

    growth, gap, others = math.expm1(epsilon), own - other, nodes - 1

    def above(count: float) -> float:
        if count <= 0.0:
            return 1.0
        if count > others:
            return 0.0
        return float(special.betainc(count, others - count + 1.0, other))

    # P - e^eps Q has one change of sign on either side; any event gives a lower bound, so the
    # thresholds need not be exact.
    best = 0.0
    report, silent = gap - growth * other, growth * (1.0 - other) + gap
    if report > 0.0:
        odds = silent / report * other / (1.0 - other)
        threshold = math.ceil(nodes * odds / (1.0 + odds))
        for count in range(max(0, threshold - 1), threshold + 2):
            best = max(best, report * above(count - 1.0) - silent * above(count))
    lacks, more = gap - growth * (1.0 - own), gap + growth * own
    if lacks > 0.0:
        odds = lacks / more * other / (1.0 - other)
        threshold = math.floor(nodes * odds / (1.0 + odds))
        for count in range(max(0, threshold - 1), threshold + 2):
            best = max(best, lacks * (1.0 - above(count + 1.0)) - more * (1.0 - above(count)))
    return max(0.0, best * (1.0 - _SLACK) - 1e-14)


class LocalRandomizer(Protocol):
    """The interface of an oracle for shuffling; it compares and hashes by its parameters."""

    @property
    def name(self) -> str:
        """The name of the randomizer in plans."""

    @property
    def domain(self) -> Domain:
        """The possible answers."""

    @property
    def fresh(self) -> bool:
        """Whether a node's reports in several rounds are independent."""

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio, which says how well a report hides among other people's."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the randomizer."""


_MEMBERS = tuple(name for name in vars(LocalRandomizer) if not name.startswith("_"))


def _check_randomizer(oracle: object) -> None:
    # Looked up and not evaluated: some properties are computed. A class has what its instances
    # have, and cannot say anything.
    missing = object()
    if isinstance(oracle, type) or any(
        inspect.getattr_static(oracle, name, missing) is missing for name in _MEMBERS
    ):
        raise _arguments.mistyped("oracle must be a frequency oracle or a VariationRatio", oracle)


@dataclasses.dataclass(frozen=True)
class Shuffled(Mechanism):
    """Reports of a local randomizer in an order that says nothing about their senders.

    One node's answer is replaced by another (the number of nodes is public). An adversary who sees
    only the shuffled reports learns much less than one who sees a report with its sender.

    Parameters
    ----------
    oracle
        A frequency oracle, or the :class:`~turnout.accounting.VariationRatio` of any pure local
        randomizer.
    nodes
        The number n of nodes, from 1 to 10^10. Do not count nodes that collude or deviate from the
        protocol.
    participation
        :class:`~turnout.Everyone` or :class:`~turnout.Bernoulli`: each node takes part with that
        probability, **and the shuffler hides who does**. If the adversary sees who takes part, the
        guarantee is that of the participating nodes.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range, probabilities are personal, or rounds
        of the oracle share permanent answers (:class:`~turnout.frequency.longitudinal.Memoized`).

    Notes
    -----
    The privacy blanket (Balle, Bell, Gascón, Nissim, 2019), evaluated exactly, except that the
    number of its reports is put into blocks. Its adversary learns which of the other reports do not
    come from the common part of the laws of all answers, and sees the rest shuffled. An absent node
    is one more output in the common part. If the common part is known only in two sets
    (``blanket=None``), this is the reduction to "clones" of Feldman, McMillan, Talwar (2023).
    :meth:`lower_delta` shows the gap.

    The variation-ratio reduction of Wang, Peng, Li, Xu, Wu, Yang (2024) is **not a bound** for
    randomizers with more than two outputs: it mixes the node's report outside of the two sets with
    the others' although their laws differ. Direct encoding of three answers at epsilon 0.5 with two
    nodes has a delta of 0.0194 at 0.4; the reduction says 0.0118.

    Examples
    --------
    >>> import turnout as tn
    >>> shuffled = Shuffled(tn.DirectEncoding(epsilon=2.0, domain=4), nodes=100_000)
    >>> round(shuffled.epsilon(1e-6), 3)
    0.03
    """

    oracle: LocalRandomizer | VariationRatio
    nodes: int
    participation: Participation = dataclasses.field(default_factory=Everyone)

    adjacencies: ClassVar[tuple[str, ...]] = ("replace",)
    _calibrated: ClassVar[dict[str, bool]] = {"nodes": True}

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, VariationRatio):
            _check_randomizer(self.oracle)
        if not isinstance(self.oracle, VariationRatio) and not self.oracle.fresh:
            raise InvalidValueError(
                "oracle must make every report with fresh noise, got "
                f"{self.oracle.name!r}, whose rounds share permanent answers and do not "
                "compose: use its _lifetime_variation_ratio for all rounds together, or "
                "variation_ratio for one round"
            )
        super().__post_init__()
        taking_part = stated_participation(self.participation)
        if not isinstance(taking_part, (Everyone, Bernoulli)):
            raise _arguments.mistyped(
                "participation must be a rate, Everyone() or Bernoulli(rate)", self.participation
            )
        settle(self, participation=taking_part)
        if self._law()[2] <= 0.0:
            raise InvalidValueError("oracle must tell answers apart, got equal probabilities")

    def _law(self) -> tuple[float, float, float, float, float, float]:
        """Return the masses for the core: exact fractions, each rounded once."""
        ratio, rate = self._variation_ratio, Fraction(self.participation.uniform_rate or 0.0)
        own, other, common = (rate * part for part in (ratio._own, ratio._other, ratio._common))
        away = 1 - rate
        if ratio.blanket is None:
            # Only nodes that stay away look like all others.
            neither, blanket = away, 2 * common + away
        else:
            neither, blanket = 1 - own - other, rate * Fraction(ratio.blanket) + away
        masses = (
            own,
            other,
            own - other,
            max(Fraction(0), neither),
            common,
            min(blanket, Fraction(1)),
        )
        one, two, three, four, five, six = (float(mass) for mass in masses)
        return one, two, three, four, five, six

    @property
    def _variation_ratio(self) -> VariationRatio:
        """The variation ratio of the oracle."""
        oracle = self.oracle
        if isinstance(oracle, VariationRatio):
            return oracle
        return _arguments.instance(
            "oracle.variation_ratio", oracle.variation_ratio, VariationRatio, "a VariationRatio"
        )

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return {"replace": Divergence(*_core.shuffled(epsilon, self.nodes, self._law()).T)}

    def _reached(self) -> tuple[Real, ...]:
        """Return the law of two possible data sets; nothing if only one set can be counted."""
        told = self._told_apart()
        if told is None or told.third is None:
            return ()
        return (TwoSets(self.nodes, told.own, told.other, told.third),)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta of possible data."""
        told = self._told_apart()
        if told is None:
            return Reached(0.0, "", False)
        if told.third is None:
            name = f"{self.nodes - 1:,} other nodes that all hold the other answer"
            return Reached(_counted(epsilon, self.nodes, told.own, told.other), name, False)
        return super()._reached_delta(epsilon, word)

    def _told_apart(self) -> ToldApart | None:
        """Return the sets that can be counted; for a variation ratio those of three outputs."""
        oracle, rate = self.oracle, self.participation.uniform_rate or 0.0
        if isinstance(oracle, VariationRatio):
            own, other, _, _, common, _ = self._law()
            return ToldApart(own, other, common)
        told: ToldApart | None = getattr(oracle, "_told_apart", None)
        if told is None:
            return None
        third = None if told.third is None else rate * told.third
        return ToldApart(rate * told.own, rate * told.other, third)

    def lower_delta(self, epsilon: npt.ArrayLike) -> Floats | float:
        """Return a lower bound of delta at an epsilon, which an adversary can reach.

        This adversary counts the reports that support the first of two answers and not the second,
        and those that support the second and not the first, while all other nodes hold a third
        answer. If the probabilities of these sets are not known for an oracle, the adversary counts
        the reports that support one answer, while the other nodes hold the other. The bound is zero
        for a randomizer that defines neither (``_told_apart``). For a
        :class:`~turnout.accounting.VariationRatio` it is that of the randomizer with three outputs.

        Parameters
        ----------
        epsilon
            One or many finite numbers of at least 0, of any shape.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``epsilon``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``epsilon`` is out of range.
        """
        points = nonnegative("epsilon", epsilon)
        found = [self._reached_delta(float(point), "replace").value for point in points.ravel()]
        return shaped(np.array(found), points)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the mechanism."""
        if isinstance(self.oracle, VariationRatio):
            fields = dataclasses.fields(self.oracle)
            oracle: dict[str, Any] = {
                field.name: str(value)
                for field in fields
                if (value := getattr(self.oracle, field.name)) is not None
            }
        else:
            oracle = self.oracle.to_dict()
        return {
            "mechanism": "Shuffled",
            "oracle": oracle,
            "nodes": self.nodes,
            "participation": self.participation.to_dict(),
        }
