"""Bad input: one clear exception that names the argument, its value, and what was expected.

Every case is a call, the class of the exception, and a pattern of its message. Exceptions of NumPy,
of the compiled core's own, of Python's internals never come through.
"""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    TurnoutError,
    UnknownLabelError,
)

NAN, INF = float("nan"), float("inf")
LABELS = tn.Domain(["a", "b", "c"])
CODES = tn.Domain.from_integers(3)
ORACLE = tn.DirectEncoding(1.0, 3)
NAMED = tn.DirectEncoding(1.0, LABELS)
HALF = tn.Bernoulli(0.5)
REPORTS = ORACLE.randomize([0, 1, 2] * 20, participation=HALF, seed=1)
TALLY = ORACLE.tally(REPORTS)
OTHER = ORACLE.collect([0, 1], participation=HALF)
ESTIMATE = TALLY.estimate()
INTERVAL = ESTIMATE.interval()
PERSONAL = ORACLE.collect([0, 1, 2], participation=tn.Personalized([0.5, 1, 1]), seed=1)
EMPTY = ORACLE.collect([])
PLAN = tn.Plan(ORACLE, HALF)
OWN_PLAN = PERSONAL.plan

CERTAIN = DesignSums(2**64, 2**64)
ONE = tn.Personalized([0.5])


def weights(size: int) -> WeightedSums:
    return WeightedSums(np.zeros((size + 1, 2), np.uint64), np.zeros((size + 1, 2), np.uint64))


def variance(**arguments: Any) -> Any:
    return tn.estimator_variance(
        **{"oracle": ORACLE, "participation": HALF, "true_counts": [1, 1, 1], **arguments}
    )


#: What the calls of the table are made of.
NAMES = {**globals(), "Fraction": Fraction, "datetime": datetime, "pl": pl, "pa": pa}

Case = tuple[str, type[TurnoutError], str]


def refused(error: type[TurnoutError], *calls: tuple[str, str]) -> list[Case]:
    """Calls that one class of exceptions refuses, each with a pattern of the message."""
    return [(call, error, pattern) for call, pattern in calls]


def each(call: str, *values: str, pattern: str) -> list[tuple[str, str]]:
    """The same call with each of some values in place of the underscore."""
    return [(call.replace("_", value, 1), pattern) for value in values]


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
        ("tn.Domain({'a', 'b'})", "labels must have an order.* set"),
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
        ("tn.Domain([1.0, NAN])", r"labels\[1\] is NaN"),
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

TALLIES = [
    *refused(
        InvalidTypeError,
        ("ORACLE.tally(None)", "reports must be a Reports.* None"),
        ("ORACLE.tally([0, 1])", r"reports must be a Reports.*\[0, 1\]"),
        ("ORACLE.tally(TALLY)", "reports must be a Reports"),
        ("tn.Tally(None, [1, 1, 1], 3, 3)", "plan must be a Plan, got None"),
        ("tn.Tally(ORACLE, [1, 1, 1], 3, 3)", "plan must be a Plan, got Direct"),
        ("tn.Tally(PLAN, [1, 1, 1], None, 3)", "received must .* None"),
        ("tn.Tally(PLAN, [1, 1, 1], 3.0, 3)", r"received must .* 3\.0"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, None)", "nodes must .* None"),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights='x', design=DesignSums(0, 0))",
            "weights must be a WeightedSums object, got 'x'",
        ),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights=weights(3), design='x')",
            "design must be a DesignSums object, got 'x'",
        ),
        ("TALLY.merge(None)", "other must be a Tally, got None"),
        ("TALLY.merge(REPORTS)", "other must be a Tally, got Reports"),
        ("tn.Tally.from_bytes(None)", "data must be bytes, got NoneType"),
        ("tn.Tally.from_bytes('x')", "data must be bytes, got str"),
        ("tn.Reports.concatenate(None)", "pieces must be .* None"),
        ("tn.Reports.concatenate(REPORTS)", "pieces must be an iterable"),
        ("tn.Reports.concatenate([[0]])", r"pieces\[0\] must be a Reports"),
        ("tn.Reports(None, HALF, [0], 1)", "oracle must be an oracle.* None"),
        ("tn.Reports(ORACLE, None, [0], 1)", "participation must be .* None"),
        ("tn.Reports(ORACLE, HALF, None, 1)", r"codes must be one-dim.* shape \(\)"),
        ("tn.Reports(ORACLE, HALF, [0], None)", "nodes must .* None"),
        ("tn.Plan(None, None)", "oracle must be an oracle, got None"),
        ("tn.Plan.from_json(None)", "text must be the JSON text of a plan.* None"),
    ),
    *refused(
        PlanMismatchError,
        (
            "tn.DirectEncoding(2.0, 3).tally(REPORTS)",
            r"reports was made under another plan: epsilon 1\.0 instead of 2\.0",
        ),
        ("NAMED.tally(REPORTS)", "domain .*from_integers.* instead of"),
        (
            "TALLY.merge(EMPTY)",
            r"other was made .*: participation Everyone\(\) instead of Bernoulli\(0\.5\)",
        ),
        ("TALLY + PERSONAL", "other was made under another plan"),
    ),
    *refused(
        InvalidValueError,
        ("tn.Tally(PLAN, [1, 1, 1], -3, 3)", "received must .* -3"),
        ("tn.Tally(PLAN, [1, 1, 1], 4, 3)", "received must .* to 3, got 4"),
        ("tn.Tally(PLAN, [1, 1, 1], 2, 3)", "support must add up to the 2 .* 3"),
        (
            "tn.Tally(tn.Plan(ORACLE, tn.Everyone()), [1, 1, 1], 3, 4)",
            "received must equal nodes = 4 when everyone takes part, got 3",
        ),
        ("tn.Tally(PLAN, [0, 0, 0], 0, -1)", "nodes must .* -1"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, 2**64)", "nodes must .* 184467440737"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, 10**5000)", "nodes must .* a int"),
        (
            "tn.Tally(PLAN, [1, 1, 1], 3, 3, weights=weights(3))",
            "weights and design must be given for personal participation, and only then",
        ),
        ("tn.Tally(OWN_PLAN, [1, 1, 1], 3, 3)", "weights and design must"),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights=weights(2), design=DesignSums(0, 0))",
            "weights must have 3 codes as the domain has, got 2",
        ),
        (
            "tn.Tally(OWN_PLAN, [1, 0, 0], 1, 1, weights=weights(3), design=CERTAIN)",
            "weights do not fit support at code 0: 1 reports",
        ),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 1, weights=weights(3), design=DesignSums(2**65, 1))",
            "design must be sums over 1 nodes",
        ),
        ("tn.Reports.concatenate([])", "pieces must hold at least one"),
    ),
    *refused(
        CorruptDataError,
        ("tn.Tally.from_bytes(b'')", "not a tally of turnout"),
        ("tn.Tally.from_bytes(TALLY.to_bytes()[:-1])", "truncated or was altered"),
        ("tn.Plan.from_dict(None)", "not a plan of turnout: its format is not 'turnout-plan'"),
    ),
]

ESTIMATES = [
    *refused(
        EstimatorError,
        ("EMPTY.estimate()", "tally has no nodes"),
        (
            "tn.Tally(PLAN, [0, 0, 0], 0, 5).estimate()",
            '"hajek" divides by the number of reports, and none',
        ),
        ("PERSONAL.estimate('g')", "'g' needs one participation rate"),
        ("PERSONAL.estimate('c_hat')", "'c_hat' needs one partic"),
        ("TALLY.estimate('c').interval()", "no interval around 'c' covers"),
        (
            "PERSONAL.estimate().interval(method='score')",
            "'hajek' with personal probabilities has no score interval",
        ),
    ),
    *refused(
        InvalidValueError,
        *each(
            "TALLY.estimate(_)",
            *("None", "'Hajek'", "''", "1", "['hajek']", "{}", "np.array([1, 2])", "tn.Tally"),
            pattern="method must be one of 'hajek', 'horvitz_thompson', .*, got",
        ),
        *each(
            "ESTIMATE.interval(_)",
            *("0", "1", "-0.5", "1.5", "95", "NAN", "INF"),
            pattern="level must be a level between 0 and 1, got",
        ),
        ("ESTIMATE.interval(method='wald')", "method must be one of 'auto'"),
        ("ESTIMATE.interval(method=None)", "method must be .* got None"),
        (
            "ESTIMATE.interval(simultaneous='both')",
            "simultaneous must be one of None, 'bonferroni', 'sidak', got 'both'",
        ),
        ("ESTIMATE.interval(simultaneous=True)", "simultaneous .* True"),
        ("INTERVAL.contains([0.5, 0.5])", r"frequencies must .*\(2,\)"),
        ("ESTIMATE.project(None)", "method must be one of 'none', .* None"),
        ("ESTIMATE.project('clip')", "'clip_normalize', got 'clip'"),
        ("ESTIMATE.project(np.array([1, 2]))", r"got array\(\[1, 2\]\)"),
        ("ESTIMATE.distance([0.5, 0.5])", r"reference must .*\(2,\)"),
        ("ESTIMATE.distance([0.5, NAN, 0])", r"reference\[1\] must be finite"),
        (
            "ESTIMATE.distance(NAMED.collect(['a', 'b'], seed=1).estimate())",
            r"reference must be of the same domain Domain\.from_integers\(3\), got Domain\(\['a'",
        ),
        ("ESTIMATE.distance([1, 0, 0], 'tv')", "metric must be one of 'total"),
        ("ESTIMATE.distance([1, 0, 0], None)", "metric must .* None"),
        ("ESTIMATE.distance([1, 1, -1], 'kl')", "'kl' is defined for dist"),
        ("ESTIMATE.to_records(2)", "level must be a level .* 2"),
        ("TALLY.estimate('c').to_records(2)", "level must be"),
        ("ESTIMATE.plot([0.5, 0.5])", r"truth must have one number .*\(2,\)"),
        ("ESTIMATE.plot([0.5, NAN, 0.5])", r"truth\[1\] must be finite"),
        ("ESTIMATE.plot(level=95)", r"level must be a level .* 95\.0"),
        ("TALLY.estimate('c').plot(level=95)", "level must be"),
    ),
    *refused(
        InvalidTypeError,
        *each(
            "ESTIMATE.interval(_)",
            *("None", "'0.95'", "True", "[0.95]"),
            pattern="level must be a real number, got",
        ),
        ("INTERVAL.contains('x')", "frequencies must be .*one number .* 'x'"),
        ("INTERVAL.contains([[1], [2, 3]])", "frequencies must be .* a sequence of 3"),
        ("ESTIMATE.distance(['1', '0', '0'])", "reference must hold real"),
        ("ESTIMATE.distance([1j, 0, 0])", "reference .*complex128"),
        ("ESTIMATE.plot(ax='axes')", "ax must be matplotlib axes, got 'axes'"),
    ),
]

VARIANCES = [
    *refused(
        InvalidTypeError,
        ("variance(oracle=None)", "oracle must be a randomizer, got None"),
        ("variance(participation='half')", r"participation .* 'half'"),
    ),
    *refused(
        InvalidValueError,
        ("variance(method=None)", "method must be one of .* None"),
        ("variance(true_counts=None)", "exactly one of true_counts"),
        ("variance(values=[0])", "exactly one of true_counts and values"),
        ("variance(true_counts=[0, 0, 0])", "at least one node"),
        (
            "variance(participation=tn.Personalized([0.5]))",
            "values and the probabilities of all nodes are needed",
        ),
        (
            "variance(participation=tn.Personalized([0.5]), true_counts=None, values=[0, 1])",
            "participation must have one probability for each of the 2 values, got 1",
        ),
        (
            "variance(participation=ONE, true_counts=None, values=[0], method='g')",
            "method must be one that takes personal probabilities .* got 'g'",
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


COUNTS: list[tuple[str, type[TurnoutError], str]] = [
    ("None", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("5", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("'abc'", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("[1, 2]", InvalidValueError, r"one count for each of the 3 .*\(2,\)"),
    ("[1, 2, 3, 4]", InvalidValueError, r"one count for each of the 3 .*\(4,\)"),
    ("[[1, 2, 3]]", InvalidTypeError, r"one count for each of the 3 .*\(1, 3\)"),
    ("[[1], [2, 3], 4]", InvalidTypeError, r"sequence of 3 counts, got \[\[1\], \["),
    ("[1, -2, 3]", InvalidValueError, r"\[1\] must be a non-negative whole .* -2"),
    ("[1, 0.5, 3]", InvalidValueError, r"\[1\] must be a non-negative whole .* 0\.5"),
    ("[1, 2, NAN]", InvalidValueError, r"\[2\] must be a non-negative whole .* nan"),
    ("[INF, 2, 3]", InvalidValueError, r"\[0\] must be a non-negative whole .* inf"),
    ("[1, 2**64, 3]", InvalidValueError, rf"\[1\] must be .* got {2**64}"),
    ("[1, 2**70, 3]", InvalidValueError, rf"\[1\] must be .* got {2**70}"),
    ("np.array([1, INF, 3], np.float16)", InvalidValueError, r"\[1\] must be .* inf"),
    ("['1', '2', '3']", InvalidTypeError, "must hold whole numbers, got dtype <U1"),
    ("[True, False, True]", InvalidTypeError, "must hold whole numbers, got dtype bool"),
    ("[1, None, 3]", InvalidTypeError, r"\[1\] must be .* got None"),
    ("[1j, 2, 3]", InvalidTypeError, "must hold whole numbers, got dtype complex128"),
]


def of_all_counts() -> list[Case]:
    """The same of every call that takes a count for each code."""
    calls = {
        "ORACLE.simulate(_)": "true_counts",
        "variance(true_counts=_)": "true_counts",
        "tn.Tally(PLAN, _, 6, 6)": "sums",
    }
    return [
        (call.replace("_)", f"{counts})").replace("_,", f"{counts},"), error, f"^{name}.*{pattern}")
        for call, name in calls.items()
        for counts, error, pattern in COUNTS
        if (call, counts) != ("variance(true_counts=_)", "None")
    ]


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
