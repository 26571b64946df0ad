"""Checks that a new kind of question keeps the contract of all kinds.

>>> import turnout as tn
>>> from turnout.testing import check_randomizer
>>> check_randomizer(tn.DirectEncoding(1.0, 3), [0, 1, 2] * 100)["message"]
'works'

Each verb of :data:`VERBS` is run on small data, and its result is compared with that of an
equivalent way. A kind that refuses a verb gives a reason, which the result contains.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _arguments, _kinds
from turnout._extras import require
from turnout._public import listing
from turnout.bounds import Bounds
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.left_out import LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import read_reports, write_reports
from turnout.collecting.tally import read_tally
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Bernoulli, Everyone, Participation, Personalized
from turnout.pipeline import collect, randomize, scan
from turnout.products import ProductDomain, Questions
from turnout.signing import SigningKey

__all__ = ["check_randomizer"]

__dir__ = listing(__all__)

#: So many answers are compared with each other.
_COMPARED: Final = 4

#: Reports of each answer in which the guarantee is looked for; columns and bins of these.
_AUDITED: Final = 20_000
_COLUMNS: Final = 8
_BINS: Final = 64

Verb = Callable[[Any, Any, Path], None]

_HALF: Final = Bernoulli(0.5)

#: What is left out, where that has to arrive.
_LEFT_OUT: Final = LeftOut(unanswered=3, ungrouped=2, duplicates=4, refused=1)

#: A half-width in standard deviations that is left with a chance of 2e-9.
_FAR: Final = 6.0


def check_randomizer(oracle: Any, answers: Any) -> dict[str, str]:
    """Check that a kind of question keeps the contract of all kinds.

    Parameters
    ----------
    oracle
        A randomizer of the kind: an instance of a subclass of
        :class:`turnout.collecting.kind.Kind`.
    answers
        At least a hundred answers of its domain, not all equal, as ``randomize`` accepts them.

    Returns
    -------
    dict
        ``"works"`` for each name of :data:`VERBS`, or the reason why the kind refuses it.

    Raises
    ------
    AssertionError
        If a verb breaks the contract; the message names the verb and the difference.
    InvalidTypeError, InvalidValueError
        If ``oracle`` is not a randomizer, or there are too few answers.

    Examples
    --------
    >>> import turnout as tn
    >>> found = check_randomizer(tn.mean.Duchi(1.0), [0.5, -0.5] * 50)
    >>> [verb for verb, reason in found.items() if reason != "works"]
    ['simulate']
    """
    _arguments.instance("oracle", oracle, Kind, "a randomizer")
    size = len(oracle.domain.to_codes(answers))
    if size < 100:
        raise InvalidValueError(f"answers must be at least 100, got {size}")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in VERBS:
            place = Path(folder, name.replace(" ", "_"))
            place.mkdir()
            found[name] = checked_verb(name, oracle, answers, place)
    return found


def checked_verb(name: str, oracle: Any, answers: Any, folder: Path) -> str:
    """Run one verb; return ``"works"``, or the reason why the kind refuses it.

    Raises
    ------
    AssertionError
        If the verb breaks the contract.
    """
    try:
        VERBS[name](oracle, answers, folder)
    except (InvalidValueError, InvalidTypeError) as error:
        if not _may_refuse(name, oracle):
            raise AssertionError(f"{name}: {type(oracle).__name__} refuses it: {error}") from error
        return str(error)
    except AssertionError as error:
        raise AssertionError(f"{name}: {type(oracle).__name__}: {error}") from error
    return "works"


def _may_refuse(name: str, oracle: Any) -> bool:
    """Return whether a kind may refuse a verb."""
    if name == "message":
        return not oracle.fresh
    if name == "personal rates":
        return bool(oracle._one_rate_because)
    if name == "simulate":
        return bool(oracle.no_simulation_because)
    if name == "series":
        return isinstance(oracle.domain, Questions)
    several = isinstance(oracle.domain, Bounds) and oracle.domain.dimensions > 1
    return name == "job" and (several or not (oracle.fresh and oracle.by_blocks))


def _pickled(value: Any) -> Any:
    """Return a value after pickling, or after copying if its class has no module."""
    try:
        return pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError):
        return copy.deepcopy(value)


def _description(oracle: Any, answers: Any, folder: Path) -> None:
    again = _kinds.from_dict(oracle.to_dict())
    for other in (again, _pickled(oracle), copy.deepcopy(oracle)):
        assert other == oracle, "what is rebuilt from its description or its pickle differs"
        assert hash(other) == hash(oracle), "equal randomizers have different hashes"
        assert repr(other) == repr(oracle), "equal randomizers show themselves differently"
    assert oracle.domain_type.from_dict(oracle.domain.to_dict()) == oracle.domain
    assert 0 < oracle.realized_epsilon <= oracle.epsilon, "realized_epsilon is above epsilon"
    assert oracle.realized_ratio > 1, "reports say nothing"
    assert oracle.report_bits > 0


def _plan_file(oracle: Any, answers: Any, folder: Path) -> None:
    key = SigningKey.generate()
    plan = Plan(oracle, _HALF, serial=7)
    plan.write(folder / "plan.json", signing_key=key)
    read = Plan.read(folder / "plan.json", public_key=key.public_key, least_serial=7)
    assert read == plan, "the plan read from its file differs"
    assert read.fingerprint == plan.fingerprint


def _randomize(oracle: Any, answers: Any, folder: Path) -> None:
    size = len(oracle.domain.to_codes(answers))
    everyone = oracle.randomize(answers)
    assert everyone.nodes == size
    assert len(everyone) == size or oracle.silent, "not everyone reports under Everyone()"
    some = oracle.randomize(answers, participation=_HALF, seed=1)
    half = abs(len(some) - size / 2) <= _FAR * (size / 4) ** 0.5
    assert half or oracle.silent, "not half of the nodes report"
    assert some == oracle.randomize(answers, participation=_HALF, seed=1), (
        "a seed gives two results"
    )
    for reports in (everyone, some):
        assert reports.codes.dtype == oracle.report_dtype, "reports are not of report_dtype"
        assert reports.codes.shape[1:] == oracle.report_shape, "reports are not of report_shape"
        oracle.check_reports(reports.codes)
        assert oracle.improbable(reports.codes).shape == (len(reports),)
        assert _pickled(reports) == reports


def _guarantee(oracle: Any, answers: Any, folder: Path) -> None:
    """Bound the actual likelihood ratio from below, from the reports of some answers.

    One half of the reports selects events. The other half bounds how much likelier each event is
    under one answer than under the other (Clopper and Pearson). All bounds together fail with
    probability 1e-6.
    """
    codes = oracle.domain.to_codes(answers)
    _, places = np.unique(codes.reshape(len(codes), -1), axis=0, return_index=True)
    if places.size < 2:
        raise InvalidValueError(
            "answers must contain at least two different answers, whose reports are compared"
        )
    chosen = np.unique(np.linspace(0, places.size - 1, _COMPARED).astype(np.int64))
    ends = [answers[int(places[place])] for place in chosen]
    drawn = [_heard(oracle.randomize([end] * _AUDITED).codes) for end in ends]
    for one, other in itertools.combinations(range(len(ends)), 2):
        _compare((ends[one], ends[other]), (drawn[one], drawn[other]), oracle.realized_ratio)


def _heard(codes: Any) -> Any:
    """Return the observation of each node; silence is a number that no report has."""
    rows = codes.reshape(len(codes), int(np.prod(codes.shape[1:]))).astype(np.int64)
    silent = np.full((_AUDITED - len(rows), rows.shape[1]), np.iinfo(np.int64).min)
    return np.concatenate([rows, silent])[np.random.default_rng(1).permutation(_AUDITED)]


def _compare(ends: tuple[Any, Any], drawn: tuple[Any, Any], ratio: Any) -> None:
    """Bound the ratio of the probabilities of events under two answers."""
    columns = min(drawn[0].shape[1], _COLUMNS)
    for column in range(columns):
        one, other = (each[:, column].astype(np.int64) for each in drawn)
        edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, _BINS)))
        counts = [
            np.array(
                [np.bincount(np.searchsorted(edges, half), minlength=_BINS) for half in halves]
            )
            for halves in (np.split(one, 2), np.split(other, 2))
        ]
        for first, second in (counts, counts[::-1]):
            chosen = first[0] > second[0]
            seen, unseen = int(first[1][chosen].sum()), int(second[1][chosen].sum())
            low, high = _share(seen)[0], _share(unseen)[1]
            limit = float(ratio)
            assert low <= limit * high, (
                f"reports are {low / high:.4g} times as likely under {ends[0]!r} as under "
                f"{ends[1]!r}, or the other way round, and should be at most {limit:.4g} times"
            )


def _share(count: int) -> tuple[float, float]:
    """Return limits of a share of half of the audited reports, which fail with probability 1e-9."""
    from scipy import special  # noqa: PLC0415

    total = _AUDITED // 2
    low = float(special.betaincinv(count, total - count + 1, 5e-10)) if count else 0.0
    high = float(special.betaincinv(count + 1, total - count, 1 - 5e-10)) if count < total else 1.0
    return low, high


def _tally(oracle: Any, answers: Any, folder: Path) -> None:
    for who in (Everyone(), _HALF):
        reports = oracle.randomize(answers, participation=who, seed=2)
        tally = oracle.tally(reports)
        assert type(tally) is oracle.tally_type, "tallies are not of tally_type"
        assert tally.received == len(reports)
        assert tally == tally + oracle.tally_type.empty(tally.plan), "an empty tally adds something"
        first = type(reports)(oracle, _HALF, reports.codes[:30], reports.nodes, left_out=_LEFT_OUT)
        rest = type(reports)(oracle, _HALF, reports.codes[30:], reports.nodes)
        both = oracle.tally(first) + oracle.tally(rest)
        whole = oracle.tally(type(reports)(oracle, _HALF, reports.codes, 2 * reports.nodes))
        assert both.left_out == _LEFT_OUT, "what is left out of the reports is not in the tally"
        whole = replace(whole, left_out=_LEFT_OUT)
        assert both == whole, "the tallies of two parts do not add up to that of all"


def _collect(oracle: Any, answers: Any, folder: Path) -> None:
    for who in (Everyone(), _HALF):
        _collected(oracle, answers, who)


def _collected(oracle: Any, answers: Any, who: Participation) -> None:
    made = oracle.collect(answers, participation=who, seed=3)
    reports = oracle.randomize(answers, participation=who, seed=3)
    assert made == oracle.tally(reports), f"collect differs from tally(randomize) under {who!r}"


def _simulate(oracle: Any, answers: Any, folder: Path) -> None:
    counts = [] if oracle.no_simulation_because else [3_000_000_000] * oracle.domain.size
    for who in (Everyone(), _HALF):
        made = oracle.simulate(counts, participation=who, seed=6)
        assert made == oracle.simulate(counts, participation=who, seed=6), (
            "a seed gives two tallies"
        )
        rate, size = who.uniform_rate or 0.0, sum(counts)
        assert made.nodes == size, "not all nodes are in the tally"
        far = _FAR * (size * rate * (1 - rate)) ** 0.5
        as_many = abs(made.received - rate * size) <= far
        assert as_many or oracle.silent, "not as many report as take part"
        assert made == made + oracle.tally_type.empty(made.plan)


def _bytes(oracle: Any, answers: Any, folder: Path) -> None:
    tally = oracle.collect(answers, participation=_HALF)
    _written(tally)
    _written(replace(tally, left_out=_LEFT_OUT))


def _written(tally: Any) -> None:
    data = tally.to_bytes()
    assert read_tally(data) == tally == type(tally).from_bytes(data), "bytes give another tally"
    assert read_tally(data).to_bytes() == data
    assert _pickled(tally) == tally


def _estimate(oracle: Any, answers: Any, folder: Path) -> None:
    estimate = replace(oracle.collect(answers), left_out=_LEFT_OUT).estimate()
    assert estimate.left_out == _LEFT_OUT, "the estimate does not say what is left out"
    limits = estimate.interval(0.99)
    wider = estimate.interval(0.999)
    assert (np.asarray(limits.low) <= np.asarray(limits.high)).all()
    assert (np.asarray(wider.width) >= np.asarray(limits.width)).all(), "a surer level is narrower"
    assert estimate.to_records(0.99), "the estimate lists nothing"


def _message(oracle: Any, answers: Any, folder: Path) -> None:
    plan = Plan(oracle, _HALF)
    people = list(answers)[:60]
    made = [plan.report(answer, seed=number) for number, answer in enumerate(people)]
    sent = [message for message in made if message is not None]
    gathered = plan.gather([*sent, *sent[:3], b"{}"], nodes=len(people), on_bad="count")
    assert len(gathered.reports) == len(sent), "a message is lost"
    assert (gathered.refused, gathered.repeated) == (1, min(3, len(sent)))
    tally = oracle.tally(gathered.reports)
    assert (tally.nodes, tally.left_out) == (len(people), LeftOut(refused=1))
    one = plan.gather(sent[:1], nodes=1)
    first = made.index(sent[0])
    expected = oracle.randomize([people[first]], participation=_HALF, seed=first)
    assert np.array_equal(one.codes, expected.codes), "a message does not hold the report"


def _personal(oracle: Any, answers: Any, folder: Path) -> None:
    who = Personalized(np.linspace(0.2, 1.0, len(oracle.domain.to_codes(answers))))
    _collected(oracle, answers, who)
    _written(oracle.collect(answers, participation=who))
    _in_files(oracle.randomize(answers, participation=who), folder)


def _report_file(oracle: Any, answers: Any, folder: Path) -> None:
    _in_files(oracle.randomize(answers, participation=_HALF), folder)


def _in_files(reports: Any, folder: Path) -> None:
    require("pyarrow", "cli")
    reports = replace(reports, left_out=_LEFT_OUT)
    for suffix in ("parquet", "arrow"):
        path = folder / f"reports.{suffix}"
        write_reports(reports, path)
        assert read_reports(path) == reports, f"reports read from {suffix} differ"


def _job(oracle: Any, answers: Any, folder: Path) -> None:
    pa = require("pyarrow", "cli")
    if isinstance(oracle.domain, (ProductDomain, Questions)):
        names = list(oracle.domain.columns)
        rows = [
            [each[name] for name in names] if isinstance(each, Mapping) else each
            for each in answers
        ]
        columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    else:
        # A column has one number a row: a kind of several refuses it.
        names = ["answer"]
        columns = {"answer": answers if np.ndim(answers) == 1 else np.asarray(answers)[:, 0]}
    # The last row has no answer.
    table = pa.table({name: pa.array([*column, None]) for name, column in columns.items()})
    scanned = scan(table, names, missing="drop")
    reports = randomize(scanned, oracle, folder / "job", participation=_HALF, seed=4)
    collected = collect(scanned, oracle, participation=_HALF, seed=4)
    assert reports.tally() == oracle.tally(reports) == collected, "a job gives another tally"
    assert collected.left_out == LeftOut(unanswered=1), "a row that is left out is not counted"
    assert oracle.collect(scanned, participation=_HALF, seed=4) == collected


def _by_thirds(oracle: Any, answers: Any, keys: list[Any]) -> tuple[Any, Any]:
    """Count the reports in three separate thirds."""
    reports = oracle.randomize(answers, seed=5)
    nodes = np.bincount(np.arange(reports.nodes) % 3)
    index = np.arange(len(reports)) % 3
    return tally_by_group(reports, index, nodes, names="day", keys=keys), reports


def _groups(oracle: Any, answers: Any, folder: Path) -> None:
    grouped, reports = _by_thirds(oracle, answers, [1, 2, 3])
    first_nodes = -(-reports.nodes // 3)
    assert grouped.total == oracle.tally(reports), "groups do not add up to the whole"
    assert grouped.estimate().to_records(), "the estimate by groups lists nothing"
    assert GroupedTally.from_bytes(grouped.to_bytes()) == grouped, "bytes give other groups"
    one = {key: replace(tally, left_out=LeftOut(unanswered=1)) for key, tally in grouped.items()}
    some = GroupedTally(grouped.names, one, of_no_group=LeftOut(duplicates=2))
    assert GroupedTally.from_bytes(some.to_bytes()) == some
    twice = some + some._of_new_origin().over("day")
    assert twice.total.left_out == LeftOut(unanswered=6, duplicates=4)
    week = grouped + _by_thirds(oracle, answers, [1, 2, 3])[0]
    first = week.over("day")[1]
    assert first.nodes == 2 * first_nodes
    assert first.received == first.nodes or oracle.silent


def _series(oracle: Any, answers: Any, folder: Path) -> None:
    days = [date(2024, 1, day) for day in (1, 2, 3)]
    grouped = _by_thirds(oracle, answers, days)[0].estimate()
    series = grouped.series()
    assert list(series.times) == days, "a series has other times than the groups"
    assert series.to_records() == grouped.to_records(), "a series says other than the groups"


#: What every kind of question does, by name.
VERBS: Final[dict[str, Verb]] = {
    "description": _description,
    "plan file": _plan_file,
    "randomize": _randomize,
    "guarantee": _guarantee,
    "tally": _tally,
    "collect": _collect,
    "simulate": _simulate,
    "bytes": _bytes,
    "personal rates": _personal,
    "estimate": _estimate,
    "message": _message,
    "report file": _report_file,
    "job": _job,
    "groups": _groups,
    "series": _series,
}
