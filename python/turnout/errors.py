"""The exceptions that turnout raises.

Every one of them is a :class:`TurnoutError`; each is also the built-in exception that a Python
user would expect in its place, so ``except ValueError`` keeps working.
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
    """Base class of everything that turnout raises on purpose."""


class InvalidValueError(TurnoutError, ValueError):
    """An argument has the right type and a value that cannot be used."""


class InvalidTypeError(TurnoutError, TypeError):
    """An argument has a type or a dtype that cannot be used."""


class UnknownLabelError(InvalidValueError):
    """A value is not one of the labels of the domain."""


class CodeOutsideDomainError(InvalidValueError):
    """An integer code is negative or not below the size of the domain."""


class PlanMismatchError(InvalidValueError):
    """Reports or tallies were made under different plans and cannot be put together."""


class PlanExpiredError(InvalidValueError):
    """A plan is not to be used any more: its time is over, or a later one is known."""


class CorruptDataError(InvalidValueError):
    """Stored bytes are truncated, altered, or not turnout's."""


class UnsupportedVersionError(CorruptDataError):
    """Stored bytes or a plan are of a version that this release does not read."""


class MemoryLimitError(TurnoutError, MemoryError):
    """What a file asks for takes more memory than it may, or than there is."""


class EstimatorError(InvalidValueError):
    """An estimator or interval does not apply to this tally; the message gives the reason."""


class BudgetExceededError(TurnoutError, RuntimeError):
    """A release would spend more than a privacy budget holds; nothing was spent."""


class NotFittedError(TurnoutError, ValueError, AttributeError):
    """A sampler was used before it was fitted; what scikit-learn's exception of that name is."""


class ProtocolError(TurnoutError, RuntimeError):
    """A message or a step does not fit the state of a role; the role is as it was before."""


class MalformedMessageError(ProtocolError, CorruptDataError):
    """The bytes of a message are truncated, altered, or hold what the round does not allow."""


class ImplausibleSumsError(ProtocolError, InvalidValueError):
    """Sums that parties who all follow the protocol reach once in a million rounds at most.

    Somebody sent what is not the shares of one item, or a message was altered: nothing is estimated
    from such sums, and they are not to be published.
    """


class MissingPartyError(ProtocolError):
    """A round lost a party, and with it the result; nothing of the round was kept.

    Attributes
    ----------
    parties
        Who is missing.
    """

    def __init__(self, message: str, parties: Iterable[object] = ()) -> None:
        super().__init__(message)
        self.parties = tuple(parties)


class WorkerLostError(TurnoutError, RuntimeError):
    """Workers of a cluster were lost and a task was not finished; what was written is whole."""


class StoreUnavailableError(TurnoutError, RuntimeError):
    """A database cannot be used at the moment: it is locked, full or gone; try again later."""


class MissingExtraError(TurnoutError, ImportError):
    """An optional dependency is not installed; the message gives the pip command."""
