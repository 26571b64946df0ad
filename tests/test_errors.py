"""Exceptions: every one is turnout's and the built-in that a Python user expects."""

from __future__ import annotations

import inspect
import pickle

import pytest

import turnout as tn
from turnout import errors

HIERARCHY: dict[str, tuple[type[BaseException], ...]] = {
    "TurnoutError": (Exception,),
    "InvalidValueError": (errors.TurnoutError, ValueError),
    "InvalidTypeError": (errors.TurnoutError, TypeError),
    "UnknownLabelError": (errors.InvalidValueError, ValueError),
    "CodeOutsideDomainError": (errors.InvalidValueError, ValueError),
    "PlanExpiredError": (errors.InvalidValueError, ValueError),
    "PlanMismatchError": (errors.InvalidValueError, ValueError),
    "CorruptDataError": (errors.InvalidValueError, ValueError),
    "UnsupportedVersionError": (errors.CorruptDataError, ValueError),
    "ProtocolError": (errors.TurnoutError, RuntimeError),
    "MalformedMessageError": (errors.ProtocolError, errors.CorruptDataError),
    "ImplausibleSumsError": (
        errors.ProtocolError,
        errors.InvalidValueError,
        RuntimeError,
        ValueError,
    ),
    "MissingPartyError": (errors.ProtocolError, RuntimeError),
    "StoreUnavailableError": (RuntimeError,),
    "WorkerLostError": (RuntimeError,),
    "BudgetExceededError": (errors.TurnoutError, RuntimeError),
    "EstimatorError": (errors.InvalidValueError, ValueError),
    "NotFittedError": (errors.TurnoutError, ValueError, AttributeError),
    "MemoryLimitError": (errors.TurnoutError, MemoryError),
    "MissingExtraError": (errors.TurnoutError, ImportError),
}


def test_the_list_of_exceptions_is_complete() -> None:
    defined = {name for name, found in vars(errors).items() if inspect.isclass(found)}
    assert set(errors.__all__) == defined == set(HIERARCHY)


@pytest.mark.parametrize("name", HIERARCHY)
def test_each_exception_is_what_python_users_expect(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.TurnoutError)
    assert [base for base in HIERARCHY[name] if not issubclass(kind, base)] == []
    assert kind.__doc__
    assert kind.__module__ == "turnout.errors"


def test_values_and_types_are_told_apart() -> None:
    assert not issubclass(errors.InvalidValueError, TypeError)
    assert not issubclass(errors.InvalidTypeError, ValueError)
    assert not issubclass(errors.PlanMismatchError, errors.CorruptDataError)
    assert not issubclass(errors.UnknownLabelError, errors.CodeOutsideDomainError)


def test_the_base_class_is_at_the_top_level() -> None:
    assert tn.TurnoutError is errors.TurnoutError
    assert tn.errors is errors


@pytest.mark.parametrize("name", HIERARCHY)
def test_exceptions_travel_between_processes(name: str) -> None:
    original = getattr(errors, name)("epsilon must be positive, got -1")
    other = pickle.loads(pickle.dumps(original))
    assert type(other) is type(original)
    assert str(other) == str(original) == "epsilon must be positive, got -1"


def test_errors_of_the_compiled_core_are_of_the_same_classes() -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        tn.DirectEncoding(-1.0, 3)
    assert type(caught.value) is errors.InvalidValueError
    with pytest.raises(errors.CodeOutsideDomainError) as outside:
        tn.DirectEncoding(1.0, 3).randomize([0, 3])
    assert type(outside.value) is errors.CodeOutsideDomainError
