"""The base class of mechanisms: delta, epsilon, adjacency and composition."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._search import least_at_most
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.composition import WORST, Composition
from turnout.accounting.loss_grid import EXACT, Real
from turnout.accounting.privacy_loss import dots
from turnout.accounting.values import (
    MOST_ROUNDS,
    Divergence,
    Reached,
    checked,
    directions,
    nonnegative,
    positive,
    shaped,
    surely,
    unit_interval,
)
from turnout.errors import InvalidValueError

M = TypeVar("M", bound="Mechanism")

#: Beyond this no epsilon is looked for.
_LARGEST_EPSILON = 1e18


class Mechanism(abc.ABC):
    """One release, described by how well it distinguishes neighbouring data sets.

    Mechanisms are frozen: they compare and hash by their parameters. ``adjacencies`` are the
    neighbouring data sets that a mechanism knows. ``"remove"`` compares the law with an element to
    the law without it, and ``"add"`` is the reverse. ``"add_or_remove"`` takes the larger delta of
    the two, and ``"replace"`` exchanges one element for another. The first is the default.
    """

    adjacencies: ClassVar[tuple[str, ...]] = ("add_or_remove", "add", "remove")
    #: The parameters that can be calibrated, and whether a larger one protects better.
    _calibrated: ClassVar[dict[str, bool]] = {}

    #: The largest noise that is looked for in a calibration.
    _largest_noise: ClassVar[float] = 2.0**40

    def __post_init__(self) -> None:
        """Check the parameters that several mechanisms share."""
        for item in dataclasses.fields(cast("Any", self)):
            settle(self, **{item.name: checked(item.name, getattr(self, item.name))})

    @abc.abstractmethod
    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        """Evaluate every direction at epsilons of at least 0."""

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        return self._divergence(epsilon)[direction]

    def _reached(self) -> tuple[Real, ...]:
        """Return the worst known pairs of laws that neighbouring data sets can have.

        This is the mechanism itself if, up to rounding, delta is that of the worst pair of laws.
        """
        return (self,)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta that is reached at an epsilon, in the directions of an adjacency."""
        laws = self._reached()
        if laws == (self,):
            return surely(float(self.delta(epsilon, word)), self._slack, WORST)
        found = [
            (float(law._tail(way, np.array([epsilon])).delta[0]) * (1.0 - EXACT), law.name)
            for law in laws
            for way, _ in directions(word)
        ]
        return Reached(*max(found, default=(0.0, "")), exact=False)

    def _whole_range(self, parameter: str) -> tuple[int, int] | None:
        """Return the range of a whole number in a calibration, if other parameters limit it."""
        return None

    @property
    def _slack(self) -> float:
        """The relative amount by which delta may exceed that of the worst data."""
        return EXACT

    @property
    def name(self) -> str:
        """The data that reach its delta, in words."""
        return WORST

    @overload
    def delta(self, epsilon: float, adjacency: str | None = None) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike, adjacency: str | None = None) -> Floats | float: ...
    def delta(self, epsilon: npt.ArrayLike, adjacency: str | None = None) -> Floats | float:
        """Return an upper bound of delta at an epsilon.

        Parameters
        ----------
        epsilon
            One or many finite numbers of at least 0, of any shape.
        adjacency
            One of :attr:`adjacencies`; :attr:`default_adjacency` if None.

        Returns
        -------
        float or numpy.ndarray
            Delta in [0, 1], float64, in the shape of ``epsilon``: at least the exact value, and
            larger only by rounding.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        word = self._adjacency_of(adjacency)
        points = nonnegative("epsilon", epsilon)
        if points.ndim == 0:
            return self._bound(points.item(), word)
        known = self._divergence(points.ravel())
        deltas = [known[forward].delta for forward, _ in directions(word)]
        return shaped(np.maximum.reduce(deltas), points)

    def _bound(self, epsilon: float, word: str) -> float:
        """Return delta at one epsilon, for which arrays take longer than the core."""
        known = self._divergence(np.array([epsilon]))
        deltas = [float(known[forward].delta[0]) for forward, _ in directions(word)]
        # What is not a number is above every number, as it is for np.maximum.
        return max(deltas, key=lambda delta: math.inf if math.isnan(delta) else delta)

    @overload
    def epsilon(self, delta: float, adjacency: str | None = None) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike, adjacency: str | None = None) -> Floats | float: ...
    def epsilon(self, delta: npt.ArrayLike, adjacency: str | None = None) -> Floats | float:
        """Return an upper bound of epsilon at a delta.

        Parameters
        ----------
        delta
            One or many numbers in [0, 1], of any shape.
        adjacency
            One of :attr:`adjacencies`; :attr:`default_adjacency` if None.

        Returns
        -------
        float or numpy.ndarray
            An epsilon at which the bound of delta is at most ``delta``, within 1e-13 of the
            smallest one; infinity where no such epsilon exists. In the shape of ``delta``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        word = self._adjacency_of(adjacency)
        targets = unit_interval("delta", delta)
        found = [self._epsilon(float(target), word) for target in targets.ravel()]
        return shaped(np.array(found, dtype=np.float64), targets)

    def _epsilon(self, target: float, word: str) -> float:
        bound = functools.partial(self._bound, word=word)
        if target >= 1.0 or bound(0.0) <= target:
            return 0.0
        return least_at_most(bound, target, most=_LARGEST_EPSILON)

    def compose(self, rounds: int, adjacency: str | None = None) -> Composition:
        """Compose the mechanism with itself.

        Parameters
        ----------
        rounds
            The number of times that it is used, at least 1; later uses may depend on earlier
            results.
        adjacency
            One of :attr:`adjacencies`; :attr:`default_adjacency` if None.

        Returns
        -------
        Composition
            The composition, with upper and lower values of epsilon and delta.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        return compose([(self, rounds)], adjacency)

    @property
    def default_adjacency(self) -> str:
        """The default adjacency: the first that the mechanism knows."""
        return self.adjacencies[0]

    def _adjacency_of(self, word: str | None) -> str:
        """Return a checked adjacency; None means the default.

        Raises
        ------
        InvalidValueError
            If the mechanism does not know the adjacency.
        """
        if word is None:
            return self.default_adjacency
        return _arguments.choice("adjacency", word, self.adjacencies)

    def privacy_loss_distribution(
        self, interval: float = 1e-4, adjacency: str | None = None
    ) -> Any:
        """Return the privacy loss distribution for dp-accounting.

        It is turnout's profile on a grid, by dp-accounting's pessimistic connect-the-dots
        construction.

        Parameters
        ----------
        interval
            The step of the grid of privacy losses, above 0.
        adjacency
            One of :attr:`adjacencies`; :attr:`default_adjacency` if None.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            The distribution, for composition with that library's own mechanisms.

        Raises
        ------
        MissingExtraError
            If dp-accounting is not installed.
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        word = self._adjacency_of(adjacency)
        step = positive("interval", interval)
        library = require("dp_accounting.pld.privacy_loss_distribution", "accounting")
        masses = require("dp_accounting.pld.pld_pmf", "accounting")
        parts = []
        for forward, backward in directions(word):
            index, deltas = dots(self._tail, forward, backward, step, 1e-15)
            parts.append(masses.create_pmf_pessimistic_connect_dots(step, index, deltas))
        return library.PrivacyLossDistribution(*parts)

    def replace(self: M, **changes: Any) -> M:
        """Return a copy of the mechanism with some parameters changed.

        Raises
        ------
        InvalidValueError
            If the mechanism does not have a parameter, or a value is out of range.
        """
        names = [field.name for field in dataclasses.fields(cast(Any, self))]
        for name in changes:
            _arguments.choice("parameter", name, names)
        return cast(M, dataclasses.replace(cast(Any, self), **changes))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the mechanism."""
        values = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(cast(Any, self))
        }
        return {"mechanism": type(self).__name__, **values}


def compose(
    mechanisms: Iterable[Mechanism | tuple[Mechanism, int]], adjacency: str | None = None
) -> Composition:
    """Compose mechanisms that are used on the same data.

    Parameters
    ----------
    mechanisms
        Mechanisms, or pairs of a mechanism and the number of times that it is used.
    adjacency
        The neighbouring data sets: an adjacency that all mechanisms know. If None, their common
        default.

    Returns
    -------
    Composition
        The composition, with upper and lower values of epsilon and delta.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there is no mechanism, an entry is not a mechanism, a number of rounds is out of range,
        or the mechanisms do not know the adjacency or have different defaults.

    Examples
    --------
    >>> from turnout.accounting import GaussianMechanism, LocalSampling
    >>> both = compose([(LocalSampling(0.01, 1.0), 100), GaussianMechanism(20.0)])
    >>> both.rounds
    101
    """
    parts = [_part(position, entry) for position, entry in enumerate(_listed(mechanisms))]
    if not parts:
        raise InvalidValueError("mechanisms must hold at least one mechanism, got none")
    if adjacency is None:
        defaults = sorted({mechanism.default_adjacency for mechanism, _ in parts})
        if len(defaults) > 1:
            listed = " and ".join(repr(word) for word in defaults)
            raise InvalidValueError(
                f"mechanisms have different adjacencies ({listed}): name one that all of them know"
            )
        adjacency = defaults[0]
    for mechanism, _ in parts:
        mechanism._adjacency_of(adjacency)
    return Composition(parts, adjacency)


def _listed(mechanisms: Any) -> list[Any]:
    return _arguments.items("mechanisms", mechanisms, "a sequence of mechanisms")


def _part(position: int, entry: Any) -> tuple[Mechanism, int]:
    if isinstance(entry, Mechanism):
        return entry, 1
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], Mechanism):
        rounds = _arguments.integer(
            f"mechanisms[{position}]: rounds", entry[1], least=1, most=MOST_ROUNDS
        )
        return entry[0], rounds
    raise _arguments.mistyped(
        f"mechanisms[{position}] must be a mechanism or a pair of one and a number of rounds", entry
    )
