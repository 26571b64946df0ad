"""Models of who takes part.

Each node draws its own participation. If the server sees who reports, participation gives **no**
privacy amplification: the likelihood ratio of a report stays ``e^eps``. Amplification needs
participation that is hidden from the adversary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout._values import settle
from turnout.errors import CorruptDataError, InvalidValueError


class Participation:
    """Base class of the models of participation."""

    __slots__ = ()

    #: The word for this way in plans.
    name: str

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the participation."""
        return {"kind": self.name}

    @property
    def uniform_rate(self) -> float | None:
        """The rate that all nodes share, or None if each has its own."""
        return None

    @staticmethod
    def from_dict(description: Any) -> Participation:
        """Rebuild a participation from :meth:`to_dict`.

        Parameters
        ----------
        description
            The result of ``to_dict``, possibly after a JSON round trip.

        Returns
        -------
        Participation
            Personal probabilities are not included: they travel with the reports.

        Raises
        ------
        CorruptDataError
            If it does not describe a participation.

        Examples
        --------
        >>> Participation.from_dict({"kind": "bernoulli", "rate": 0.25})
        Bernoulli(0.25)
        """
        try:
            match description:
                case {"kind": "everyone", **rest} if not rest:
                    return Everyone()
                case {"kind": "bernoulli", "rate": float(rate), **rest} if not rest:
                    return Bernoulli(rate)
                case {"kind": "personalized", **rest} if not rest:
                    return _Elsewhere()
        except InvalidValueError as error:
            raise CorruptDataError(f"not the description of a participation: {error}") from error
        raise CorruptDataError(
            f"not the description of a participation: {_arguments.shown(description)}"
        )

    def _in_plan(self) -> Participation:
        """Return the participation for a plan, without the probabilities of single nodes."""
        return self


@dataclass(frozen=True)
class Everyone(Participation):
    """Every node reports.

    Examples
    --------
    >>> Everyone().rate
    1.0
    """

    __slots__ = ()
    name = "everyone"

    @property
    def rate(self) -> float:
        """The probability that a node reports: one."""
        return 1.0

    @property
    def uniform_rate(self) -> float | None:
        """The rate that all nodes share: one."""
        return 1.0


@dataclass(frozen=True, repr=False)
class Bernoulli(Participation):
    """Every node reports with the same probability, independently.

    Parameters
    ----------
    rate
        The probability, in (0, 1]. It is sampled exactly.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``rate`` is not a probability in (0, 1].

    Examples
    --------
    >>> Bernoulli(0.1).rate
    0.1
    """

    name = "bernoulli"

    rate: float

    def __post_init__(self) -> None:
        """Check the rate."""
        settle(self, rate=_arguments.probability("rate", self.rate))

    @property
    def uniform_rate(self) -> float | None:
        """The rate that all nodes share."""
        return self.rate

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the participation."""
        return {"kind": self.name, "rate": self.rate}

    def __repr__(self) -> str:
        """Show the constructor."""
        return f"Bernoulli({self.rate!r})"


class Personalized(Participation):
    """Every node reports with its own probability, independently.

    The probabilities travel with the reports and are public. They must not depend on the nodes'
    values; otherwise participation itself reveals something about the values. If they are
    correlated with the values all the same, ``"T"`` is biased; ``"horvitz_thompson"`` and
    ``"hajek"`` remain correct.

    Parameters
    ----------
    probabilities
        One probability in [2^-30, 1] for each node, in the order of the values. The array is
        copied.

    Raises
    ------
    InvalidTypeError
        If ``probabilities`` is not a one-dimensional sequence of numbers.
    InvalidValueError
        If one of them is out of range: a node that (almost) never reports cannot be represented.

    Examples
    --------
    >>> Personalized([0.1, 0.5, 1.0]).probabilities
    array([0.1, 0.5, 1. ])
    """

    __slots__ = ("_probabilities",)
    name = "personalized"

    #: The smallest probability that is accepted.
    minimum = 2.0**-30

    def __init__(self, probabilities: npt.ArrayLike) -> None:
        given = _arguments.vector(
            "probabilities", probabilities, "a sequence of real numbers, one for each node"
        )
        array = np.array(given, dtype=np.float64, order="C")
        wrong = ~((array >= self.minimum) & (array <= 1.0))
        _arguments.refuse_entries("probabilities", array, wrong, "in [2^-30, 1]")
        array.flags.writeable = False
        self._probabilities = array

    @property
    def probabilities(self) -> Floats:
        """The probability of each node; read-only."""
        return self._probabilities

    def _in_plan(self) -> Participation:
        """Return the participation without the probabilities: a plan keeps only its kind."""
        return _Elsewhere()

    def __reduce__(self) -> tuple[type[Personalized], tuple[Floats]]:
        """Copy and pickle the probabilities; the copy is read-only too."""
        return Personalized, (self._probabilities,)

    def __eq__(self, other: object) -> bool:
        """Compare probabilities."""
        return isinstance(other, Personalized) and np.array_equal(
            other._probabilities, self._probabilities
        )

    def __hash__(self) -> int:
        """Hash of the probabilities."""
        return hash((Personalized, self._probabilities.tobytes()))

    def __repr__(self) -> str:
        """Show how many nodes there are and the range of their probabilities."""
        if not self._probabilities.size:
            return "Personalized(0 nodes)"
        low, high = self._probabilities.min(), self._probabilities.max()
        return f"Personalized({self._probabilities.size} nodes, {low:g} to {high:g})"


@dataclass(frozen=True, repr=False)
class _Elsewhere(Participation):
    """Personal probabilities in a plan, which does not hold them: they travel with the reports."""

    __slots__ = ()
    name = "personalized"

    def __repr__(self) -> str:
        return "Personalized(...)"


def taking_part_in(participation: Participation | float | None) -> Participation:
    """Return a participation: everyone by default, and a number as the rate of all nodes.

    Raises
    ------
    InvalidTypeError
        If it is neither a participation nor a number.
    InvalidValueError
        If the number is not a rate above 0 and at most 1.

    Examples
    --------
    >>> taking_part_in(None)
    Everyone()
    """
    return Everyone() if participation is None else stated_participation(participation)


def stated_participation(participation: Participation | float) -> Participation:
    """Return a participation, a number as the rate of all nodes; there is no default.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As for :func:`taking_part_in`; also if it is not given.

    Examples
    --------
    >>> stated_participation(0.25), stated_participation(1)
    (Bernoulli(0.25), Everyone())
    """
    if isinstance(participation, Participation):
        return participation
    if isinstance(participation, (int, float, np.integer, np.floating)) and not isinstance(
        participation, bool
    ):
        if participation == 1:
            return Everyone()
        # Said of the argument that was given, not of the one of Bernoulli.
        return Bernoulli(_arguments.probability("participation", participation))
    raise _arguments.mistyped(
        "participation must be a rate, Everyone(), Bernoulli(...) or Personalized(...)",
        participation,
    )
