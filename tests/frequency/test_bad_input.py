"""Bad input: one clear exception that names the argument, its value, and what was expected.

Every case is a call, the class of the exception, and a pattern of its message. Exceptions of NumPy,
of the compiled core's own, of Python's internals never come through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.frequency.calls import (
    ESTIMATE,
    HALF,
    LABELS,
    NAMES,
    NAN,
    ORACLE,
    OTHER,
    OWN_PLAN,
    PERSONAL,
    PLAN,
    REPORTS,
    TALLY,
    Case,
    each,
    refused,
)
from tests.frequency.refused_counts import ESTIMATES, TALLIES, VARIANCES, of_all_counts

import turnout as tn
from turnout.collecting.sums import DesignSums
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    TurnoutError,
    UnknownLabelError,
)

DOMAIN = [
    *refused(
        InvalidTypeError,
        ("tn.Domain(memoryview(np.eye(3)))", "labels must be an iterable of labels"),
        ("tn.Domain(None)", "labels must be an iterable.* None"),
        ("tn.Domain(5)", "labels must be an iterable.* 5"),
        ("tn.Domain('abc')", "labels must be .* got 'abc'"),
        ("tn.Domain(b'ab')", "labels must be .* got b'ab'"),
        ("tn.Domain([[1], [2]])", r"labels\[0\] .* not hashable"),
        ("tn.Domain(np.eye(3))", r"labels\[0\] = array.* not hashable"),
        ("tn.Domain(np.array(3))", r"labels must be an iterable of labels.* array\(3\)"),
        ("tn.Domain({'a', 'b'})", "labels must be ordered.* set"),
        ("tn.Domain.from_integers(None)", "size must .* got None"),
        ("tn.Domain.from_integers(3.0)", r"size must .* got 3\.0"),
        ("tn.Domain.from_integers(True)", "size must .* got True"),
        ("tn.Domain.from_values(None)", "values must .*NoneType"),
        ("LABELS.decode(None)", r"codes must be .*integers.*\(\)"),
        ("LABELS.decode([1.0])", "codes must hold integers.*float64"),
        ("LABELS.decode('a')", "codes must be .*integers"),
        ("LABELS.decode([[0]])", r"codes must be .*\(1, 1\)"),
        ("LABELS.decode([[0], [1, 2]])", "codes must be .* value of type list"),
    ),
    *refused(
        InvalidValueError,
        ("tn.Domain([])", "labels must be at least 2 .* got 0"),
        ("tn.Domain(['a'])", "labels must be at least 2 .* got 1"),
        (
            "tn.Domain(['a', 'b', 'a'])",
            r"labels must be different: labels\[2\] = 'a' equals labels\[0\] = 'a'",
        ),
        ("tn.Domain([0, 1, True])", r"labels\[2\] = True equals labels\[1\] = 1"),
        ("tn.Domain([1.0, NAN])", r"labels\[1\] must not be NaN"),
        ("tn.Domain.from_integers(1)", "size must .* from 2 .* got 1"),
        ("tn.Domain.from_integers(-3)", "size must .* got -3"),
        ("tn.Domain.from_integers(2**32)", "to 4294967295, got 4294967296"),
        ("tn.Domain.from_integers(2**70)", f"size .* got {2**70}"),
        ("tn.Domain.from_integers(10**5000)", "size .* a int"),
        ("tn.Domain.from_values(['a', None])", "values .*missing"),
        ("tn.Domain.from_values([1.0, NAN])", "values .*missing"),
        ("tn.Domain.from_values(['a'])", "labels must be at least 2"),
    ),
    *refused(
        CodeOutsideDomainError,
        ("LABELS.decode([0, 3])", r"codes\[1\] is not .* 0 to 2"),
        ("LABELS.decode([-1])", r"codes\[0\] is not .* 0 to 2"),
        (
            "LABELS.decode(np.array([2**64 - 1], np.uint64))",
            r"codes\[0\] is not .* 0 to 2",
        ),
    ),
    *refused(
        CorruptDataError,
        ("tn.Domain.from_dict(None)", "description of a domain: None"),
    ),
]

COLUMNS = [
    *refused(
        InvalidTypeError,
        ("LABELS.encode(None)", "values must be a list.* NoneType"),
        ("LABELS.encode(5)", "values must be a list.* int"),
        ("LABELS.encode('abc')", "values must be a list.* str"),
        ("CODES.encode(b'ab')", "values must be a list.* bytes"),
        ("LABELS.encode({'a'})", "values must be .* set"),
        ("LABELS.encode({'a': 1})", "values must be .* dict"),
        ("LABELS.encode(iter(['a']))", "values must be .* list_iterator"),
        ("LABELS.encode(np.array('a'))", r"one-dimensional.* shape \(\)"),
        ("LABELS.encode(np.array([['a']]))", r"one-dim.* shape \(1, 1\)"),
        ("CODES.encode(np.zeros((2, 3), int))", r"one-dim.* \(2, 3\)"),
        ("LABELS.encode(['a', ['b']])", r"values\[1\] must .* hashed, got a value of type list"),
        ("LABELS.encode(pd.Series([['a'], ['b']]))", r"values\[0\] must .* hashed"),
        ("LABELS.encode(pa.array([['a']]))", "values must .* (large_)?list$"),
        ("LABELS.encode(pl.Series([['a']]))", "values must .* (large_)?list$"),
        ("LABELS.encode(pa.array([{'x': 'a'}]))", "values .* struct$"),
        ("LABELS.encode(pd.DataFrame({'x': ['a']}))", "values must be one"),
        ("LABELS.encode(pl.DataFrame({'x': ['a']}))", "values must be one"),
        ("LABELS.encode(pa.table({'x': ['a']}))", "values must be one"),
        ("LABELS.encode(pa.record_batch({'x': ['a']}))", "values must be one"),
        (
            "CODES.encode(memoryview(np.zeros((2, 2), np.uint8)))",
            r"values must be .* a one-dimensional array .*memoryview",
        ),
        ("CODES.encode(memoryview(np.array(1)))", "values must be .* a one-dimensional array"),
        ("CODES.encode(memoryview(np.zeros(2, complex)))", "values must be .*memoryview"),
        ("CODES.encode([0, None])", r"values\[1\] is .*an integer.*, got None"),
        (
            "CODES.encode(pd.Series([0, pd.NA], dtype='Int64'))",
            r"values\[1\] is .*an integer.*, got None",
        ),
        (
            "CODES.encode(np.ma.array([0, 1], mask=[False, True]))",
            r"values\[1\] is .*an integer.*, got None",
        ),
        ("CODES.encode(['0'])", r"values\[0\] is .*an integer.*, got a value of type str"),
        ("CODES.encode(np.array([True]))", "an integer.*, got a value of type bool"),
        (
            "CODES.encode(np.array([1j]))",
            r"values\[0\] is .*, got a value of type complex",
        ),
        ("CODES.encode(np.array(['2020'], 'M8[Y]'))", "an integer"),
    ),
    *refused(
        CodeOutsideDomainError,
        ("CODES.encode(memoryview(b'ab'))", r"values\[0\] is .* 0 to 2"),
        ("CODES.encode([0, 3])", r"values\[1\] is .* 0 to 2 \(1 such"),
        ("CODES.encode(np.array([0, -1, -1]))", r"\[1\] is .*\(2 such"),
        (
            "CODES.encode(np.array([2, 2**64 - 1], np.uint64))",
            r"values\[1\] is .*an integer from 0 to 2",
        ),
        ("CODES.encode([0, 2**70])", r"\[1\] is .*integer"),
        ("CODES.encode([10**5000])", r"values\[0\] is "),
        ("CODES.encode([0.0, 1.5])", r"values\[1\] is .*whole"),
        ("CODES.encode(np.array([0, NAN]))", r"values\[1\] is .*whole.* got nan"),
        ("CODES.encode([INF])", r"values\[0\] is .*whole"),
        ("CODES.encode(np.array([1e+30]))", r"values\[0\] is"),
        ("CODES.encode(np.array([0.5], np.float16))", r"\[0\] is .*whole"),
    ),
    *refused(
        UnknownLabelError,
        ("LABELS.encode(['a', 'x'])", r"1 value\(s\).* at values\[1\]; expected one of 'a'"),
        ("LABELS.encode([0, 1])", r"2 value\(s\).* at values\[0\]; expected"),
        ("LABELS.encode(['a', None])", "1 value.* None; expected"),
        ("LABELS.encode([datetime.date(2020, 1, 2)])", "1 value.* expected"),
    ),
]

ORACLES = [
    *refused(
        InvalidValueError,
        *each(
            "tn.DirectEncoding(_, 3)",
            *("0", "0.0", "-0.0", "-1", "-1e-300", "NAN", "INF", "-INF", "45", "42.5", "1e308"),
            pattern="epsilon must be a finite number above 0 and at most 42, got",
        ),
        ("tn.DirectEncoding(10**400, 3)", "epsilon must .* 1000"),
        ("tn.DirectEncoding(Fraction(10**400), 3)", "epsilon must"),
        ("tn.DirectEncoding(5e-324, 3)", "epsilon = .* too small"),
        ("tn.DirectEncoding(1.0, 1)", "domain must be .* from 2 .* got 1"),
        ("tn.DirectEncoding(1.0, -2)", "domain must be .* got -2"),
        ("tn.DirectEncoding(1.0, 2**32)", "domain must be .* 4294967296"),
        ("tn.DirectEncoding(1.0, 2**70)", f"domain must be .* {2**70}"),
    ),
    *refused(
        InvalidTypeError,
        *each(
            "tn.DirectEncoding(_, 3)",
            *("None", "'1'", "b'1'", "bytearray(b'1')", "True", "np.True_", "[1.0]", "1j"),
            *("LABELS", "np.array([1.0])", "memoryview(b'1')", "pd.Series([1.0, 2.0])"),
            pattern="epsilon must be a real number, got",
        ),
        ("tn.DirectEncoding(1.0, None)", "domain must be a Domain.* None"),
        ("tn.DirectEncoding(1.0, {'a', 'b'})", r"domain must be .*"),
        ("tn.DirectEncoding(1.0, 3.0)", r"domain must be .* 3\.0"),
        ("tn.DirectEncoding(1.0, True)", "domain must be .* True"),
    ),
    *refused(
        CorruptDataError,
        ("tn.FrequencyOracle.from_dict(None)", "an oracle: None"),
    ),
]

PARTICIPATION = [
    *refused(
        InvalidValueError,
        *each(
            "tn.Bernoulli(_)",
            *("0", "0.0", "-0.5", "1.5", "NAN", "INF", "-INF", "2"),
            pattern=r"rate must be a probability in \(0, 1\], got",
        ),
        *each(
            "tn.Personalized([0.5, _])",
            *("0", "-0.5", "1.5", "NAN", "INF", "-INF", "1e-300", "2"),
            pattern=r"probabilities\[1\] must be in \[2\^-30, 1\], got",
        ),
        ("tn.Bernoulli(10**400)", "rate must be a real number"),
    ),
    *refused(
        InvalidTypeError,
        *each(
            "tn.Bernoulli(_)",
            *("None", "'0.5'", "True", "[0.5]", "{}", "0.5j"),
            pattern="rate must be a real number, got",
        ),
        ("tn.Personalized(None)", r"probabilities must be one-dimensional.*\(\)"),
        ("tn.Personalized(0.5)", r"one-dimensional.*\(\)"),
        ("tn.Personalized(['0.5'])", "probabilities must hold real"),
        ("tn.Personalized('half')", "probabilities must be .*real numbers.* 'half'"),
        ("tn.Personalized([[0.5]])", r"one-dimensional.*\(1, 1\)"),
        ("tn.Personalized([[0.5], []])", "probabilities must be a seq"),
        ("tn.Personalized(np.array([0.5j]))", "real.*complex128"),
        ("tn.Personalized([0.5, None])", r"probabilities\[1\] must be a number, got None"),
        ("tn.Personalized([True])", "real numbers, got dtype bool"),
        ("tn.Personalized([object()])", r"probabilities\[0\] must be a number, got <object"),
    ),
    *refused(
        CorruptDataError,
        ("tn.Participation.from_dict(None)", "a participation: None"),
    ),
]

SIMULATE = [
    *refused(
        InvalidValueError,
        ("ORACLE.simulate([2**63, 2**63, 1])", "true_counts adds up to more"),
        (
            "ORACLE.simulate([1, 1, 1], participation=tn.Personalized([0.5] * 3))",
            r"participation must be Everyone\(\) or Bernoulli.*use collect",
        ),
    ),
]


def of_every_collection() -> list[Case]:
    """The same of every call that takes participation and a seed."""
    cases: list[Case] = []
    for name in ("randomize", "collect", "simulate"):
        call = f"ORACLE.{name}([1, 1, 1], _)"
        cases += refused(
            InvalidTypeError,
            *each(
                call,
                *("seed='1'", "seed=1.0", "seed=True", "seed=NAN", "seed=[1]", "seed=b'1'"),
                pattern="seed must be an integer from 0 to 18446744073709551615, got",
            ),
            *each(
                call,
                *("participation=True", "participation='everyone'", "participation=tn.Everyone"),
                *("participation=[0.5, 0.5, 0.5]", "participation=PLAN", "participation=1j"),
                pattern=r"participation must be a rate, Everyone\(\), Bernoulli\(...\) or",
            ),
        )
        cases += refused(
            InvalidValueError,
            *each(
                call,
                *("seed=-1", "seed=2**64", "seed=2**70", "seed=-(2**70)", "seed=10**5000"),
                pattern="seed must be an integer from 0 to 18446744073709551615, got",
            ),
            (
                call.replace("_", "participation=OWN_PLAN.participation"),
                r"participation must .*, got Personalized\(...\)",
            ),
        )
    return cases


def of_every_node_path() -> list[Case]:
    """The same of every call that takes values."""
    cases: list[Case] = []
    for name in ("randomize", "collect"):
        call = f"ORACLE.{name}(_)"
        cases += refused(
            CodeOutsideDomainError,
            (call.replace("_", "np.array([0, 7, 9], np.uint8)"), r"values\[1\] is .*\(2 such"),
            (call.replace("_", "[0, -1]"), r"values\[1\] is .*0 to 2"),
            (call.replace("_", "np.array([0, 0.5])"), r"values\[1\] is .*whole"),
            (call.replace("_", "np.array([NAN])"), r"values\[0\] is .*whole.*nan"),
            (call.replace("_", "np.array([2**63], 'u8')"), r"values\[0\] is not"),
            (call.replace("_", "[2**70]"), r"values\[0\] is not"),
        )
        cases += refused(
            InvalidTypeError,
            (call.replace("_", "None"), "values must be a list"),
            (call.replace("_", "np.zeros((2, 2), np.uint8)"), r"one-dimensional.*\(2, 2\)"),
            (call.replace("_", "['a']"), r"values\[0\] is .*got a value of type str"),
        )
        cases += refused(
            InvalidValueError,
            *(
                (
                    call.replace("_", f"[1, 1], participation=tn.Personalized([0.5] * {nodes})"),
                    f"probabilities and values must have the same length, got {nodes} and 2",
                )
                for nodes in (0, 1, 3)
            ),
        )
    return cases


TABLE = [
    *(*DOMAIN, *COLUMNS, *ORACLES, *PARTICIPATION, *SIMULATE, *TALLIES, *ESTIMATES, *VARIANCES),
    *(*of_every_collection(), *of_every_node_path(), *of_all_counts()),
    *refused(
        InvalidTypeError,
        ("ESTIMATE.distance(None)", r"reference must be .*one number .*None .*\(\)"),
    ),
    *refused(
        InvalidValueError,
        ("LABELS.decode([2**70])", r"codes\[0\] must be a number of at most 64 bits"),
        ("tn.Personalized([10**400])", r"probabilities\[0\] must be a number of at most 64"),
        ("ESTIMATE.distance([10**400, 0, 0])", r"reference\[0\] must be a number of at most"),
    ),
]


@pytest.mark.parametrize(("call", "error", "pattern"), TABLE, ids=[call for call, _, _ in TABLE])
def test_bad_input_is_refused_with_one_clear_exception(
    call: str, error: type[TurnoutError], pattern: str
) -> None:
    with pytest.raises(TurnoutError, match=pattern) as caught:
        eval(call, NAMES)
    assert type(caught.value) is error
    assert len(str(caught.value)) < 1000


def test_no_case_is_there_twice() -> None:
    assert len({call for call, _, _ in TABLE}) == len(TABLE) >= 300


#: A good call of everything public that takes arguments. Each argument in turn becomes None.
GOOD: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Domain": (tn.Domain, {"labels": ["a", "b"]}),
    "Domain.from_values": (tn.Domain.from_values, {"values": ["a", "b"]}),
    "Domain.from_integers": (tn.Domain.from_integers, {"size": 3}),
    "Domain.from_dict": (tn.Domain.from_dict, {"description": {"integers": 3}}),
    "Domain.encode": (LABELS.encode, {"values": ["a"]}),
    "Domain.decode": (LABELS.decode, {"codes": [0]}),
    "Bernoulli": (tn.Bernoulli, {"rate": 0.5}),
    "Personalized": (tn.Personalized, {"probabilities": [0.5]}),
    "DirectEncoding": (tn.DirectEncoding, {"epsilon": 1.0, "domain": 3}),
    "randomize": (ORACLE.randomize, {"values": [0], "participation": HALF, "seed": 1}),
    "collect": (ORACLE.collect, {"values": [0], "participation": HALF, "seed": 1}),
    "simulate": (ORACLE.simulate, {"true_counts": [1, 1, 1], "participation": HALF, "seed": 1}),
    "tally": (ORACLE.tally, {"reports": REPORTS}),
    "Reports": (
        tn.Reports,
        {
            "oracle": ORACLE,
            "participation": tn.Personalized([]),
            "codes": [0],
            "nodes": 1,
            "probabilities": [0.5],
            "design": DesignSums(2**63, 2**62),
        },
    ),
    "Reports.concatenate": (tn.Reports.concatenate, {"pieces": [REPORTS]}),
    "Plan": (tn.Plan, {"oracle": ORACLE, "participation": HALF}),
    "Plan.from_json": (tn.Plan.from_json, {"text": PLAN.to_json()}),
    "Plan.from_dict": (tn.Plan.from_dict, {"description": PLAN.to_dict()}),
    "Tally": (
        tn.Tally,
        {
            "plan": OWN_PLAN,
            "sums": PERSONAL.support,
            "received": PERSONAL.received,
            "nodes": PERSONAL.nodes,
            "weights": PERSONAL.weights,
            "design": PERSONAL.design,
        },
    ),
    "Tally.merge": (TALLY.merge, {"other": OTHER}),
    "Tally.from_bytes": (tn.Tally.from_bytes, {"data": TALLY.to_bytes()}),
    "Tally.estimate": (TALLY.estimate, {"method": "hajek"}),
    "interval": (ESTIMATE.interval, {"level": 0.9, "method": "auto", "simultaneous": "sidak"}),
    "project": (ESTIMATE.project, {"method": "simplex"}),
    "distance": (ESTIMATE.distance, {"reference": [1, 0, 0], "metric": "l1"}),
    "to_records": (ESTIMATE.to_records, {"level": 0.9, "simultaneous": None}),
    "estimator_variance": (
        tn.estimator_variance,
        {"oracle": ORACLE, "participation": HALF, "method": "g", "true_counts": [1, 1, 1]},
    ),
}

#: Where None is a value: it means the default.
MAY_BE_NONE = {
    *(
        (name, argument)
        for name in ("randomize", "collect", "simulate")
        for argument in ("participation", "seed")
    ),
    ("interval", "simultaneous"),
    ("to_records", "simultaneous"),
}


@pytest.mark.parametrize("name", GOOD)
def test_none_is_refused_wherever_it_is_not_the_default(name: str) -> None:
    call, arguments = GOOD[name]
    parameters = inspect.signature(call).parameters
    assert set(arguments) <= set(parameters)
    call(**arguments)
    for argument in arguments:
        given = {**arguments, argument: None}
        if (name, argument) in MAY_BE_NONE:
            call(**given)
        else:
            with pytest.raises(TurnoutError, match=rf"{argument}|description|a plan of turnout"):
                call(**given)


class Hostile:
    """A value that is nothing at all, and fails in every conversion."""

    def __repr__(self) -> str:
        return "Hostile()"


JUNK: list[Any] = [
    Hostile(),
    2**70,
    -(2**70),
    10**400,
    NAN,
    "text",
    b"bytes",
    [[1], [2, 3]],
    {"a": 1},
    np.zeros((2, 2)),
    np.array(["a", "b"]),
    np.array([1, 2]),
    np.array(1j),
    np.zeros((2, 2)).data,
    np.datetime64("2020-01-01"),
    pd.NA,
    pd.Series([1, 2]),
    pl.Series(["a", None]),
    pa.array([1, None]),
    range(3),
    Ellipsis,
]


@pytest.mark.parametrize("name", GOOD)
def test_whatever_is_given_is_taken_or_refused_with_an_exception_of_turnout(name: str) -> None:
    call, arguments = GOOD[name]
    for argument in arguments:
        for junk in JUNK:
            message = ""
            try:
                call(**{**arguments, argument: junk})
            except TurnoutError as error:
                message = str(error)
            assert len(message) < 1500, (argument, junk)
