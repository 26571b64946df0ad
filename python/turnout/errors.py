"""The exceptions that turnout raises.

Every exception is a :class:`TurnoutError`. Each is also the built-in exception that a Python user
would expect, so ``except ValueError`` works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout._public import listing

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BudgetExceededError",
    "CodeOutsideDomainError",
    "CorruptDataError",
    "EstimatorError",
    "ImplausibleSumsError",
    "InvalidTypeError",
    "InvalidValueError",
    "MalformedMessageError",
    "MemoryLimitError",
    "MissingExtraError",
    "MissingPartyError",
    "NotFittedError",
    "PlanExpiredError",
    "PlanMismatchError",
    "ProtocolError",
    "StoreUnavailableError",
    "TurnoutError",
    "UnknownLabelError",
    "UnsupportedVersionError",
    "WorkerLostError",
]

__dir__ = listing(__all__)


class TurnoutError(Exception):
    """Base class of all exceptions that turnout raises."""


class InvalidValueError(TurnoutError, ValueError):
    """An argument has the right type but an invalid value."""


class InvalidTypeError(TurnoutError, TypeError):
    """An argument has an invalid type or dtype."""


class UnknownLabelError(InvalidValueError):
    """A value is not one of the labels of the domain."""


class CodeOutsideDomainError(InvalidValueError):
    """An integer code is negative or not below the size of the domain."""


class PlanMismatchError(InvalidValueError):
    """Reports or tallies come from different plans and cannot be combined."""


class PlanExpiredError(InvalidValueError):
    """A plan must no longer be used: it has expired, or a later one is known."""


class CorruptDataError(InvalidValueError):
    """Stored bytes are truncated, altered, or not in a format of turnout."""


class UnsupportedVersionError(CorruptDataError):
    """Stored bytes or a plan have a version that this release does not read."""


class MemoryLimitError(TurnoutError, MemoryError):
    """A file needs more memory than is allowed or available."""


class EstimatorError(InvalidValueError):
    """An estimator or interval does not apply to this tally; the message gives the reason."""


class BudgetExceededError(TurnoutError, RuntimeError):
    """A release would exceed the privacy budget; nothing was spent."""


class NotFittedError(TurnoutError, ValueError, AttributeError):
    """A sampler was used before it was fitted, like scikit-learn's exception of this name."""


class ProtocolError(TurnoutError, RuntimeError):
    """A message or a step does not fit the state of a role; the role is unchanged."""


class MalformedMessageError(ProtocolError, CorruptDataError):
    """A message is truncated, altered, or holds values that the round does not allow."""


class ImplausibleSumsError(ProtocolError, InvalidValueError):
    """Sums that honest parties reach in at most one of a million rounds.

    Somebody sent something other than the shares of one item, or a message was altered. Nothing is
    estimated from such sums, and they must not be published.
    """


class MissingPartyError(ProtocolError):
    """A round lost a party and has no result; nothing of the round was kept.

    Attributes
    ----------
    parties
        The missing parties.
    """

    def __init__(self, message: str, parties: Iterable[object] = ()) -> None:
        super().__init__(message)
        self.parties = tuple(parties)


class WorkerLostError(TurnoutError, RuntimeError):
    """Workers of a cluster were lost before a task finished; files already written are complete."""


class StoreUnavailableError(TurnoutError, RuntimeError):
    """A database is locked, full or missing for now; try again later."""


class MissingExtraError(TurnoutError, ImportError):
    """An optional dependency is not installed; the message gives the pip command."""
