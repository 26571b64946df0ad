"""The exceptions that turnout raises.

Every one of them is a :class:`TurnoutError`; each is also the built-in exception that a Python
user would expect in its place, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceededError",
    "CodeOutsideDomainError",
    "CorruptDataError",
    "EstimatorError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingExtraError",
    "PlanMismatchError",
    "TurnoutError",
    "UnknownLabelError",
    "UnsupportedVersionError",
]


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


class CorruptDataError(InvalidValueError):
    """Stored bytes are truncated, altered, or not turnout's."""


class UnsupportedVersionError(CorruptDataError):
    """Stored bytes or a plan are of a version that this release does not read."""


class EstimatorError(InvalidValueError):
    """An estimator or interval does not apply to this tally; the message gives the reason."""


class BudgetExceededError(TurnoutError, RuntimeError):
    """A release would spend more than a privacy budget holds; nothing was spent."""


class MissingExtraError(TurnoutError, ImportError):
    """An optional dependency is not installed; the message gives the pip command."""
