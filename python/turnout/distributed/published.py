"""What a round publishes: sums, whether they can be, and the frequencies that they estimate."""

from __future__ import annotations

import abc
import dataclasses
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array, Floats, Integers
from turnout.distributed.parameters import Parameters
from turnout.errors import ImplausibleSumsError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation

Limits: TypeAlias = tuple[int, int]

#: How often an honest round is refused at most.
_CHANCE = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Published(Parameters):
    """The law of the sums that a mechanism publishes."""

    @abc.abstractmethod
    def _decode(self, sums: Array) -> Integers:
        """Read field elements as the whole numbers that they stand for.

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
            How likely the sum is beyond the limits at most, whoever holds what.
        """

    def _unpublished(self, sums: Integers) -> tuple[Integers, Integers]:
        """Give the least and the most that each sum may have been before it was published."""
        return sums, sums

    def _implausible(self, sums: Integers, received: int, chance: float = _CHANCE) -> str | None:
        """Say why sums cannot come from parties that all follow the protocol, or None if they can.

        Every user holds one item, so that the law of the total is known, whoever holds what; and of
        each item no more users than all of them are counted, and no fewer than none.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users that are in it.
        chance
            How often honest rounds are found implausible at most.

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
        """Refuse sums that cannot be, or hardly ever are."""
        reason = self._implausible(sums, received)
        if reason is not None:
            raise ImplausibleSumsError(
                f"{reason}, but for one round in a million at most. A message was altered, or a "
                "party sent what is not the shares of one item. Do not publish these sums. A new "
                "round costs privacy again"
            )

    def estimate(self, sums: npt.ArrayLike, received: int | None = None) -> FrequencyEstimate:
        """Estimate frequencies from published sums.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users that are in it; all of them by default.

        Returns
        -------
        FrequencyEstimate
            The frequencies among these users, with exact variances and intervals.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number for each item.
        ImplausibleSumsError
            If parties that all follow the protocol reach such sums in one round of a million at
            most: each sum, and their total, which does not depend on who holds what.
        """
        numbers = _arguments.frequencies("sums", sums, self.domain.size)
        if (numbers != np.floor(numbers)).any():
            raise InvalidValueError("sums must be whole numbers, and some are not")
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
        """Compute the root of the mean over items of the expected squared error.

        Parameters
        ----------
        frequencies
            The true frequencies; uniform by default. They do not matter where the variance is
            linear in them, as it is for all mechanisms here without a threshold, below which items
            are lost.

        Returns
        -------
        float
            The root mean squared error of a frequency; with a threshold bias included.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        size = self.domain.size
        truth = np.full(size, 1.0 / size) if frequencies is None else frequencies
        return float(np.sqrt(self._squared_errors(truth).mean()))

    def _squared_errors(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the expected squared error of each estimated frequency."""
        return self.variances(frequencies)
