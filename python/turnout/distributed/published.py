"""The published sums of a round: their plausibility, and estimates of frequencies."""

from __future__ import annotations

import abc
import dataclasses
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array, Floats, Integers
from turnout.distributed.parameters import Parameters
from turnout.domain import Domain
from turnout.errors import ImplausibleSumsError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation

Limits: TypeAlias = tuple[int, int]

#: How often an honest round is refused at most.
_CHANCE = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Published(Parameters):
    """The law of the sums that a mechanism publishes."""

    domain: Domain = dataclasses.field(kw_only=False)

    @abc.abstractmethod
    def _decode(self, sums: Array) -> Integers:
        """Decode field elements as whole numbers.

        Parameters
        ----------
        sums
            The reconstructed sum: a field element for each item.

        Returns
        -------
        numpy.ndarray
            int64.
        """

    @abc.abstractmethod
    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums.

        Parameters
        ----------
        sums
            One whole number for each item.
        received
            The number of users that are in them.

        Returns
        -------
        Estimation
            Frequencies among the received users, and their variances.
        """

    @abc.abstractmethod
    def _reach(self, held: tuple[int, int], items: int, received: int, chance: float) -> Limits:
        """Bound the sum over some items, if all parties follow the protocol.

        Parameters
        ----------
        held
            How many of the received users hold one of the items: the least and the most.
        items
            How many items are added up.
        received
            The number of users in the round.
        chance
            The largest probability that the sum is beyond the limits, whatever items the users
            hold.
        """

    def _unpublished(self, sums: Integers) -> tuple[Integers, Integers]:
        """Return the range in which each sum may have been before publication."""
        return sums, sums

    def _implausible(self, sums: Integers, received: int, chance: float = _CHANCE) -> str | None:
        """Return why honest parties cannot have produced the sums, or None if they can.

        Every user holds one item. So the law of the total is known, whatever items the users hold,
        and the count of each item is from zero to the number of users.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users that are in it.
        chance
            The largest probability that an honest round is found implausible.

        Returns
        -------
        str or None
            What is beyond which limits.
        """
        size = self.domain.size
        least, most = self._unpublished(sums)
        low, high = self._reach((0, received), 1, received, chance / 2.0 / size)
        wrong = np.flatnonzero((most < low) | (least > high))
        if wrong.size:
            first = int(wrong[0])
            return (
                f"sums[{first}] is {sums[first]}; where all parties follow the protocol it is "
                f"between {low} and {high}"
            )
        low, high = self._reach((received, received), size, received, chance / 2.0)
        if low <= int(most.sum()) and int(least.sum()) <= high:
            return None
        return (
            f"the sums add up to {int(sums.sum())}; where all parties follow the protocol, to "
            f"between {low} and {high}"
        )

    def _check_sums(self, sums: Integers, received: int) -> None:
        """Refuse sums that are impossible or almost impossible."""
        reason = self._implausible(sums, received)
        if reason is not None:
            raise ImplausibleSumsError(
                f"{reason}, except for at most one round in a million. A message was "
                "altered, or a party sent invalid shares. Do not publish these sums. A "
                "new round costs privacy again"
            )

    def estimate(self, sums: npt.ArrayLike, received: int | None = None) -> FrequencyEstimate:
        """Estimate frequencies from published sums.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users in the sum; all users by default.

        Returns
        -------
        FrequencyEstimate
            The frequencies among these users, with exact variances and intervals.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number for each item.
        ImplausibleSumsError
            If honest parties produce such sums in at most one of a million rounds. The check covers
            each sum, and the total, which does not depend on who holds which item.
        """
        numbers = _arguments.frequencies("sums", sums, self.domain.size)
        if (numbers != np.floor(numbers)).any():
            raise InvalidValueError("sums must be whole numbers")
        count = self.users
        if received is not None:
            count = _arguments.integer("received", received, least=1, most=self.users)
        wholes = numbers.astype(np.int64)
        self._check_sums(wholes, count)
        estimation = self._estimate_sums(wholes, count)
        return FrequencyEstimate._from_estimation(self, self.name, count, count, estimation)

    def variances(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the exact variances of the estimated frequencies.

        Parameters
        ----------
        frequencies
            The true frequency of each item.

        Returns
        -------
        numpy.ndarray
            float64, one variance for each item.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        truth = _arguments.frequencies("frequencies", frequencies, self.domain.size)
        model = self._estimate_sums(np.zeros(self.domain.size, np.int64), self.users).model
        assert model is not None
        return model.variance(truth)

    def expected_error(self, frequencies: npt.ArrayLike | None = None) -> float:
        """Compute the root mean squared error of the frequencies, averaged over items.

        Parameters
        ----------
        frequencies
            The true frequencies; uniform by default. They do not matter if the variance is linear
            in them. That is so for all mechanisms here without a threshold, below which counts are
            withheld.

        Returns
        -------
        float
            The root mean squared error of a frequency. With a threshold it includes the bias.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        size = self.domain.size
        truth = np.full(size, 1.0 / size) if frequencies is None else frequencies
        return float(np.sqrt(self._squared_errors(truth).mean()))

    def _error(self) -> tuple[float, str]:
        return self.expected_error(), "a frequency"

    def _squared_errors(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the expected squared error of each estimated frequency."""
        return self.variances(frequencies)
