"""No error shows what is somebody's: an answer, a record, a gradient, a share, a key, a payload.

Each road on which such a value goes in gets values that it refuses, each with a mark in it. The
traceback, with the errors that it came from, must not have the mark.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import functools
import json
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import turnout as tn
import turnout.distributed as td
from turnout import _kinds, samplers
from turnout.distributed.messages import MessageKind
from turnout.distributed.rounds import exchange
from turnout.errors import InvalidValueError, TurnoutError
from turnout.federated import SGD, Client, RandomParticipationSGD, Server, Update
from turnout.frequency.attributes import Questions
from turnout.frequency.heavy_hitters import HeavyHitters
from turnout.frequency.longitudinal import MemoizedClient
from turnout.pipeline import PseudonymKey
from turnout.products import ProductDomain
from turnout.signing import SigningKey, verify
from turnout_reproduce.baselines import BernsteinSampler, PrivateKernelDensity
from turnout_reproduce.boosting import MollifiedBoosting

#: What stands in every value that is somebody's, as digits.
MARK = "48271"
HEX = MARK.encode().hex()


class Odd:
    """An object that shows itself, and can be nothing."""

    def __repr__(self) -> str:
        return f"Odd({MARK})"

    __str__ = __repr__


#: What a value may be instead of an answer.
ODD: list[Any] = [
    MARK, f"{MARK}.5", 48271, -48271, 48271.5, 1e300 + 48271e290, 48271 + 0j, 10**40 + 48271,
    MARK.encode(), [MARK], (MARK, 48271), {MARK}, {"a": MARK}, {MARK: 1}, Odd(),
    decimal.Decimal(MARK), fractions.Fraction(48271, 7), datetime.date(4827, 1, 1),
    np.array([48271]), np.array([[MARK]]), np.float64(48271.5), np.str_(MARK), f"{MARK}\ud800",
]  # fmt: skip


def columns_of(good: Any, odd: Any) -> Iterator[Any]:
    """What is handed over instead of a column of answers."""
    yield odd
    for values in ([odd], [good, odd], (odd, good), [odd] * 9, [[odd]], [[good, odd], [good]]):
        yield values
        for made in (
            np.array,
            lambda values: np.array(values, dtype=object),
            lambda values: np.ma.masked_array(values, mask=[False] * len(values)),
            pd.Series,
            lambda values: pd.Series(values).astype("category"),
            pl.Series,
            pa.array,
        ):
            try:
                column = made(values)
            except Exception:
                continue
            yield column
    yield {"answer": [good, odd]}
    yield [{"answer": odd}]


def shown(call: Callable[[], Any]) -> str:
    """The whole traceback of an error; nothing if there is none."""
    try:
        call()
    except TurnoutError as error:
        return "".join(traceback.format_exception(error))
    except Exception as error:
        return f"NOT OURS {error!r}"
    return ""


def refusals(calls: Iterator[Callable[[], Any]]) -> int:
    """How many calls were refused; none of them may show the mark."""
    texts = [text for text in map(shown, calls) if text]
    told = [text for text in texts if MARK in text or HEX in text or "NOT OURS" in text]
    assert not told, "".join(
        [f"{len(told)} of {len(texts)}:", told[0], *sorted({one.splitlines()[-1] for one in told})]
    )
    return len(texts)


def given_to(*verbs: Callable[[Any], Any]) -> Callable[[Any], Iterator[Callable[[], Any]]]:
    """Calls of each of some functions with a value."""
    return lambda value: (functools.partial(verb, value) for verb in verbs)


def one_road(oracle: Any) -> Callable[[Any], Any]:
    """How one person reports."""
    if oracle.fresh:
        return tn.Plan(oracle, tn.Everyone()).report
    return lambda value: oracle.client(max_values=2).report(value)


def tables(first: str, second: str, odd: Any, label: Any) -> Iterator[Any]:
    """What is handed over instead of the answers to two questions."""
    yield {first: [odd], second: [label]}
    yield {first: odd, second: label}
    yield [{first: odd, second: label}]
    yield [{first: odd}]
    yield {first: [odd]}
    yield [(odd, label)]
    yield [[odd, label]]
    yield odd
    yield [odd]
    with contextlib.suppress(Exception):
        yield pd.DataFrame({first: [odd], second: [label]})


@pytest.mark.parametrize("name", sorted(_kinds.known()))
def test_no_kind_of_question_shows_an_answer(name: str, kinds: ModuleType) -> None:
    oracle = kinds.KINDS[name]
    calls = given_to(oracle.randomize, oracle.collect)

    def all_calls() -> Iterator[Callable[[], Any]]:
        domain = oracle.domain
        for odd in ODD:
            yield functools.partial(one_road(oracle), odd)
            if isinstance(domain, (ProductDomain, Questions)):
                first, second = list(domain.columns)[:2]
                label = domain.columns[second].labels[0]
                given = tables(first, second, odd, label)
            else:
                given = columns_of(domain.labels[0] if isinstance(domain, tn.Domain) else 1.0, odd)
            for value in given:
                yield from calls(value)

    assert refusals(all_calls()) > 100


def test_no_report_is_shown(kinds: ModuleType) -> None:
    def calls() -> Iterator[Callable[[], Any]]:
        for oracle in kinds.KINDS.values():
            plan = tn.Plan(oracle, tn.Everyone())
            record = {
                "format": "turnout-report", "version": 1, "plan": plan.fingerprint,
                "nonce": "0" * 32, "report": 0,
            }  # fmt: skip
            for odd in [*ODD, HEX, f"{HEX}zz"]:
                for codes in ([odd], np.array([48271]), [[48271] * 2], [[odd, odd]]):
                    yield functools.partial(tn.Reports, oracle, tn.Everyone(), codes, 1)
                messages: list[Any] = [odd]
                with contextlib.suppress(TypeError, ValueError):
                    messages += [
                        json.dumps({**record, name: odd}) for name in ("report", "nonce", "format")
                    ]
                    messages += [json.dumps({**record, MARK: 1}), json.dumps([odd]), MARK * 9]
                for message in messages:
                    yield functools.partial(plan.gather, [message])
                    yield functools.partial(plan.gather, message)

    assert refusals(calls()) > 1000
    collector = tn.Collector(tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone()))
    receipt = collector.accept(MARK)
    assert receipt.outcome == "refused"
    assert MARK not in repr(receipt)


@pytest.mark.parametrize(
    "values",
    [
        HeavyHitters(1.0, bits=8),
        HeavyHitters(1.0, length=2),
        HeavyHitters(1.0, length=2, alphabet="ab"),
    ],
)
def test_no_search_shows_a_value(values: HeavyHitters) -> None:
    current = values.rounds().current

    def calls() -> Iterator[Callable[[], Any]]:
        for odd in ODD:
            for column in columns_of(1 if values.bits else "a", odd):
                yield from given_to(current.randomize, values.collect)(column)

    assert refusals(calls()) > 100


def test_no_role_of_a_round_shows_an_item_or_a_share() -> None:
    field = td.PrimeField(251)
    mechanisms = [
        td.NoisyAggregation(3, users=2, parties=2, epsilon=1.0),
        td.SamplingAggregation(2, users=4, parties="users", rate=0.9, dummies=5),
        td.TwoStageSampling(2, users=4, reported=1, rate=0.5, floor=2),
    ]
    party = td.Party(td.Role.USER)

    def calls() -> Iterator[Callable[[], Any]]:
        for odd in [*ODD, MARK.encode() * 20]:
            for mechanism in mechanisms:
                round_ = td.Round.start(mechanism)
                yield functools.partial(round_.user(0).report, odd)
                yield functools.partial(mechanism.run, [odd] * mechanism.users)
                for values in ([odd] * mechanism.users, odd):
                    yield functools.partial(exchange, round_, values)
                roles: list[Any] = [round_.server(), round_.user(0)]
                for role in roles:
                    yield functools.partial(role.receive, odd)
                    if isinstance(odd, bytes):
                        for kind in MessageKind:
                            message = td.Message(kind, round_.identifier, party, role.party, odd)
                            yield functools.partial(role.receive, message.to_bytes())
            for verb in (field._reduce, field._lift, field._pack, field.reconstruct):
                for values in (odd, [odd], [odd, 1], np.array([48271, 1])):
                    yield functools.partial(verb, values)
            yield functools.partial(field._expand, odd, 3)
            yield functools.partial(td.Message, MessageKind.SHARE, bytes(16), party, party, odd)
            yield functools.partial(td.Message.from_bytes, odd)

    assert refusals(calls()) > 100


def test_no_training_shows_a_gradient() -> None:
    plan = RandomParticipationSGD(1.0, 1.0, clip=1.0, noise_multiplier=2.0, local_size=2)
    bare = RandomParticipationSGD(1.0, 1.0, clip=1.0, noise="none", local_size=2)
    model = {"w": np.zeros(2), "b": np.zeros(1)}

    def updated(plan: Any, gradients: Any) -> Any:
        return Client(plan, 2, parameters=model).answer(0, lambda elements: gradients)

    def added(update: Any) -> Any:
        server = Server(plan, model, SGD(0.1))
        server.open(1)
        return server.add(update, 0)

    bad = np.full((2, 3), 48271.0)
    bad[1, 1] = np.nan

    def calls() -> Iterator[Callable[[], Any]]:
        # Keys are names of parameters, which are public.
        values = [odd for odd in ODD if not isinstance(odd, dict)]
        for odd in [*values, bad, np.full((2, 4), 48271.0), np.full((2, 3), 48271)]:
            for gradients in (
                odd,
                [odd],
                {"w": odd},
                {"w": odd, "b": odd},
                {"w": [[odd, 1], [1, 1]]},
                [[odd] * 3] * 2,
            ):
                yield functools.partial(updated, plan, gradients)
                yield functools.partial(updated, bare, gradients)
            yield functools.partial(Update, 0, odd, "plan")
            yield functools.partial(added, odd)
        yield functools.partial(added, Update(0, np.full(4, 48271), plan.fingerprint))
        yield functools.partial(added, Update(0, np.full(3, 48271), plan.fingerprint))
        yield functools.partial(added, Update(0, np.full(3, 48271.0), plan.fingerprint))

    assert refusals(calls()) > 100


SAMPLERS: list[Any] = [
    samplers.FiniteMollifier(1.0, 5),
    samplers.RandomizedResponseSampler(1.0, domain=["no", "yes"]),
    samplers.MinimaxSampler(1.0, 5),
    samplers.TableSampler(1.0, {"x": (0.0, 1.0)}),
    samplers.MollifiedDensity(1.0, reference=samplers.Uniform([0.0], [1.0])),
    MollifiedBoosting(1.0, reference=samplers.Uniform([0.0], [1.0]), n_rounds=1),
    BernsteinSampler(1.0, bounds=(0.0, 1.0)),
    PrivateKernelDensity(1.0, bounds=(0.0, 1.0)),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_no_sampler_shows_a_record(sampler: Any) -> None:
    def drawn(data: Any) -> Any:
        return samplers.sample_population(sampler, data, ["one"] * len(data))

    def calls() -> Iterator[Callable[[], Any]]:
        for odd in [*ODD, np.nan]:
            for data in (odd, [odd], [[odd]], [[0.5], [odd]], [[0.5, odd]], np.array([[48271.5]])):
                yield from given_to(sampler.fit)(data)
                if isinstance(data, list):
                    yield functools.partial(drawn, data)
            for data in ([0, odd], pd.DataFrame({"x": [0.5, 48271.5]})):
                yield functools.partial(drawn, data)

    assert refusals(calls()) > 100


def test_no_count_above_a_threshold_shows_an_item() -> None:
    counted = functools.partial(tn.sample_and_threshold, threshold=5, rate=0.5)

    def calls() -> Iterator[Callable[[], Any]]:
        for odd in [*ODD, np.nan]:
            for values in (odd, [odd], [[odd]], [odd, None], [odd, np.nan], np.array([[48271]])):
                yield functools.partial(counted, values)

    assert refusals(calls()) > 20


def test_no_key_is_shown(tmp_path: Path) -> None:
    memoized = tn.Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
    secrets: list[Any] = [MARK, HEX, MARK.encode(), MARK.encode() * 7, 48271, [48271], Odd()]
    client = memoized.client(MARK.encode() * 6 + b"xx")

    def read(reader: Callable[[Path], Any], text: str) -> Any:
        path = tmp_path / "key"
        path.touch(0o600)
        path.write_text(text)
        return reader(path)

    def calls() -> Iterator[Callable[[], Any]]:
        for secret in secrets:
            yield from given_to(SigningKey, PseudonymKey, memoized.client)(secret)
            yield functools.partial(verify, secret, b"message", bytes(64))
            yield functools.partial(tn.Plan.read, tmp_path / "plan", public_key=secret)
            yield functools.partial(memoized.permanent_answers, [1], secret)
            for reader in (SigningKey.read, PseudonymKey.read):
                for text in (
                    json.dumps({"secret": repr(secret), "format": "turnout-signing-key"}),
                    json.dumps({"key": repr(secret), "format": "turnout-pseudonym-key"}),
                    repr(secret),
                    f'{{"secret": {MARK * 300}}}',
                    f'{{"{MARK}": 1, "{MARK}": 2}}',
                ):
                    yield functools.partial(read, reader, text)
        state = client.to_bytes()
        for cut in (state[:-9], state.replace(HEX.encode(), b"zz" * 5), state[9:], b"{" + state):
            yield functools.partial(MemoizedClient.from_bytes, memoized, cut)

    assert refusals(calls()) > 50


def test_an_error_that_shows_a_mark_is_seen() -> None:
    def showing() -> Any:
        raise InvalidValueError(f"got {MARK}")

    def caused() -> Any:
        try:
            int(f"x{MARK}")
        except ValueError as error:
            raise InvalidValueError("no number") from error

    for call in (showing, caused):
        with pytest.raises(AssertionError, match=MARK):
            refusals(iter([call]))
