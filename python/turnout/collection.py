"""The plan of a collection: which oracle, which participation."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from turnout import _arguments, participation
from turnout.domain import Domain
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict
from turnout.participation import Participation

__all__ = ["Plan"]

_FORMAT = "turnout-plan"
_VERSION = 1


@dataclass(frozen=True)
class Plan:
    """What reports and tallies carry, so that they are never mixed up.

    Parameters
    ----------
    oracle
        The randomizer, with its epsilon and domain.
    participation
        How nodes take part. Of personal probabilities the plan keeps only that they are personal:
        they travel with the reports.

    Raises
    ------
    InvalidTypeError
        If the arguments are not an oracle and a participation.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
    >>> tn.Plan.from_json(plan.to_json()) == plan
    True
    """

    oracle: FrequencyOracle
    participation: Participation

    def __post_init__(self) -> None:
        """Check the classes of the fields; leave out the probabilities of single nodes."""
        _arguments.instance("oracle", self.oracle, FrequencyOracle, "an oracle")
        _arguments.instance(
            "participation",
            self.participation,
            Participation,
            "Everyone(), Bernoulli(...) or Personalized(...)",
        )
        object.__setattr__(self, "participation", self.participation.in_plan())

    @property
    def domain(self) -> Domain:
        """The answers that can be given."""
        return self.oracle.domain

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan in terms of JSON."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "oracle": self.oracle.to_dict(),
            "participation": self.participation.to_dict(),
        }

    def to_json(self) -> str:
        """Describe the plan as canonical JSON: keys sorted, no spaces, ASCII only.

        Returns
        -------
        str
            The same text for equal plans, in every process.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written to a file.
        """
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, description: Any) -> Plan:
        """Rebuild a plan from :meth:`to_dict`.

        Raises
        ------
        UnsupportedVersionError
            If it is a plan of a version that this release does not read.
        CorruptDataError
            If it is no plan.
        """
        match description:
            case {"format": "turnout-plan", "version": version} if (
                type(version) is not int or version != _VERSION
            ):
                raise UnsupportedVersionError(
                    f"the plan has version {_arguments.shown(version)}; this release of turnout "
                    f"reads {_VERSION}"
                )
            case {
                "format": "turnout-plan",
                "version": int(),
                "oracle": oracle,
                "participation": taking_part,
                **rest,
            } if not rest:
                return cls(oracle_from_dict(oracle), participation.from_dict(taking_part))
        raise CorruptDataError(f"not a plan of turnout: {_arguments.shown(description)}")

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Rebuild a plan from :meth:`to_json`.

        Raises
        ------
        UnsupportedVersionError
            If it is a plan of a version that this release does not read.
        CorruptDataError
            If it is no plan.
        InvalidTypeError
            If ``text`` is not text.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise InvalidTypeError(
                f"text must be the JSON text of a plan, got {_arguments.shown(text)}"
            )
        try:
            description = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptDataError(f"not a plan of turnout: {error}") from error
        return cls.from_dict(description)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of :meth:`to_json`, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def check_same(self, other: Plan, what: str) -> None:
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
        ours, theirs = self.oracle, other.oracle
        differences = []
        if ours.name != theirs.name:
            differences.append(f"oracle {theirs.name} instead of {ours.name}")
        if ours.epsilon != theirs.epsilon:
            differences.append(f"epsilon {theirs.epsilon} instead of {ours.epsilon}")
        if ours.domain != theirs.domain:
            differences.append(f"domain {_difference(theirs.domain, ours.domain)}")
        if self.participation != other.participation:
            differences.append(
                f"participation {other.participation!r} instead of {self.participation!r}"
            )
        raise PlanMismatchError(
            f"{what} was made under another plan: {'; '.join(differences) or 'it differs'}"
        )


def _difference(theirs: Domain, ours: Domain) -> str:
    """Say what differs between two domains, by their first different labels."""
    if repr(theirs) != repr(ours):
        return f"{theirs!r} instead of {ours!r}"
    shown = _arguments.shown
    pairs = zip(theirs.labels, ours.labels, strict=True)
    for code, (their, our) in enumerate(pairs):
        if their != our or shown(their) != shown(our):
            return f"label {code} is {shown(their)} instead of {shown(our)}"
    return "labels have other types"
