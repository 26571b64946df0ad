"""The plan of a collection of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from turnout import _arguments
from turnout.errors import PlanMismatchError
from turnout.mean.law import MeanLaw
from turnout.participation import Participation

__all__ = ["MeanPlan"]


@dataclass(frozen=True)
class MeanPlan:
    """What reports and tallies of numbers carry, so that they are never mixed up.

    Parameters
    ----------
    mechanism
        The randomizer, with its epsilon, bounds and dimensions.
    participation
        How nodes take part. Of personal probabilities the plan keeps only that they are personal:
        they travel with the reports.

    Raises
    ------
    InvalidTypeError
        If the arguments are not a mechanism and a participation.

    Examples
    --------
    >>> import turnout as tn
    >>> tn.mean.MeanPlan(tn.mean.Duchi(1.0), tn.Bernoulli(0.5)).bounds
    (-1.0, 1.0)
    """

    mechanism: MeanLaw
    participation: Participation

    def __post_init__(self) -> None:
        """Check the classes of the fields; leave out the probabilities of single nodes."""
        _arguments.instance("mechanism", self.mechanism, MeanLaw, "a mechanism for means")
        _arguments.instance(
            "participation",
            self.participation,
            Participation,
            "Everyone(), Bernoulli(...) or Personalized(...)",
        )
        object.__setattr__(self, "participation", self.participation.in_plan())

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value of every coordinate."""
        return self.mechanism.bounds

    @property
    def dimensions(self) -> int:
        """How many numbers a node holds."""
        return self.mechanism.dimensions

    def check_same(self, other: MeanPlan, what: str) -> None:
        """Refuse another plan, naming what differs.

        Parameters
        ----------
        other
            The plan to compare with.
        what
            What was made under the other plan, for the message.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        """
        if self == other:
            return
        ours, theirs = self.mechanism.to_dict(), other.mechanism.to_dict()
        differences = [
            f"{key} {theirs[key]!r} instead of {ours[key]!r}"
            for key in ours
            if ours[key] != theirs[key]
        ]
        if self.participation != other.participation:
            differences.append(
                f"participation {other.participation!r} instead of {self.participation!r}"
            )
        raise PlanMismatchError(f"{what} was made under another plan: {'; '.join(differences)}")
