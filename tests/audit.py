"""A black-box audit of local randomizers: how much privacy their reports are seen to lose.

Reports of two answers are drawn through the public interface. One half of them chooses events, the
other half bounds from below the logarithm of how much likelier each event is under one answer than
under the other (Clopper and Pearson, all bounds together failing with probability ``ALPHA``). A
bound above epsilon is a defect of the mechanism, whatever its author proved; a bound below proves
nothing, which is why the tests plant defects that must be seen.

Events are sets of values of *features* of a report: the report itself, each of its bits, which
answers it supports, where in the row an answer stands and how often, and what two reports that were
made one after the other have in common.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

#: The probability that an audit blames a mechanism that keeps its promise.
ALPHA = 1e-6

#: Features with more values than this say too little of each.
MANY = 4096

#: Of longer reports only so many bits and answers are looked at.
LONG = 128

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Feature = tuple[str, Array]


@dataclass(frozen=True)
class Mechanism:
    """What is audited: reports of answers, one row or integer for each."""

    epsilon: float
    size: int
    observe: Callable[[Integers], Array]
    #: For each report a row with a number for each answer: whether it is supported, or a score.
    scores: Callable[[Array], Array] | None = None

    @classmethod
    def of(cls, oracle: Any) -> Mechanism:
        """Take an oracle of the library, with fresh noise on every call."""

        def scores(reports: Array) -> Array:
            if reports.dtype.kind == "i":
                return reports
            bits = oracle._kernel.supports(reports)
            rows = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")
            return rows[:, : oracle.domain.size]

        def observe(values: Integers) -> Array:
            codes: Array = oracle.randomize(values).codes
            return codes

        return cls(oracle.epsilon, oracle.domain.size, observe, scores)


@dataclass(frozen=True)
class Finding:
    """The largest lower bound of epsilon, and the event that shows it."""

    bound: float
    event: str

    def __str__(self) -> str:
        return f"epsilon is at least {self.bound:.4f}: {self.event}"


def audit(mechanism: Mechanism, *, reports: int = 100_000) -> Finding:
    """Bound the epsilon of a mechanism from below, from that many reports of each answer."""
    codes = sorted({0, 1, mechanism.size - 1})
    drawn = {code: mechanism.observe(np.full(reports, code)) for code in codes}
    samples: dict[int, dict[str, Array]] = {
        code: dict(single(mechanism, rows, codes)) for code, rows in drawn.items()
    }
    comparisons = [
        (f"{name}, answer {one} against {other}", feature, samples[other][name])
        for one, other in itertools.permutations(codes, 2)
        for name, feature in samples[one].items()
    ]
    # The second of two neighbours changes its answer, the first keeps it.
    first, second = codes[:2]
    same = pair(mechanism, mechanism.observe(np.full(reports, first)), (first, second))
    values = np.tile([first, second], reports // 2)
    changed = pair(mechanism, mechanism.observe(values), (first, second))
    comparisons += both_ways(dict(same), dict(changed), "consecutive reports")
    return largest(comparisons)


def audit_processes(
    mechanism: Mechanism, kept: tuple[Array, Array], changed: tuple[Array, Array]
) -> Finding:
    """Bound epsilon from what two processes report: the second one's answer changes from 0 to 1."""
    samples = [dict(pair(mechanism, interleaved(*reports), (0, 1))) for reports in (kept, changed)]
    return largest(both_ways(samples[0], samples[1], "two processes"))


def interleaved(one: Array, other: Array) -> Array:
    return np.stack([one, other], axis=1).reshape(-1, *one.shape[1:])


def both_ways(
    one: dict[str, Array], other: dict[str, Array], what: str
) -> list[tuple[str, Array, Array]]:
    names = [name for name in one if name in other]
    forward = [(f"{what}: {name}, kept against changed", one[name], other[name]) for name in names]
    return forward + [
        (f"{what}: {name}, changed against kept", other[name], one[name]) for name in names
    ]


def single(mechanism: Mechanism, reports: Array, codes: list[int]) -> Iterator[Feature]:
    """What can be said of one report."""
    rows = reports.reshape(len(reports), -1)
    if rows.shape[1] == 1 and rows.dtype.itemsize <= 2:
        yield "the report", rows[:, 0].astype(np.int64)
    # Bits of the items; for signed items the sign and the size say more.
    if rows.dtype.kind == "u":
        rows_of_bytes = np.ascontiguousarray(rows).view(np.uint8)
        bits = np.unpackbits(rows_of_bytes, axis=1, bitorder="little")
        for bit in range(bits.shape[1])[:LONG]:
            yield f"bit {bit}", bits[:, bit]
        yield "the number of set bits", bits.sum(axis=1, dtype=np.int64)
    if rows.shape[1] > 1:
        for code in codes:
            found = rows == code
            place = np.where(found.any(axis=1), found.argmax(axis=1), rows.shape[1])
            yield f"the place of {code} in the row", place
            yield f"how often {code} is in the row", found.sum(axis=1)
            yield f"two things about {code} in the row", place * 1000 + found.sum(axis=1)
    if mechanism.scores is not None:
        scores = mechanism.scores(reports)
        for code in range(scores.shape[1])[:LONG]:
            yield f"the score of {code}", coarse(scores[:, code])
        for one, other in itertools.combinations(codes, 2):
            difference = scores[:, one].astype(np.int64) - scores[:, other]
            yield f"the scores of {one} less {other}", coarse(difference)
        yield "the sum of scores", coarse(scores.sum(axis=1, dtype=np.int64))


def pair(mechanism: Mechanism, reports: Array, answers: tuple[int, int]) -> Iterator[Feature]:
    """What can be said of two reports that follow each other."""
    rows = reports.reshape(len(reports), -1)
    first, second = rows[0::2], rows[1::2]
    equal = (first == second).all(axis=1)
    yield "equal", equal.astype(np.int64)
    if rows.shape[1] == 1 and rows.dtype.itemsize == 1:
        yield "both reports", first[:, 0].astype(np.int64) * 256 + second[:, 0]
        yield "the exclusive or", (first[:, 0] ^ second[:, 0]).astype(np.int64)
    if mechanism.scores is not None:
        scores = np.sign(mechanism.scores(reports).astype(np.int64))[:, list(answers)] + 1
        both = np.column_stack([scores[0::2], scores[1::2]])
        code = both @ 3 ** np.arange(both.shape[1])
        yield "the scores of both", code * 2 + equal


def coarse(values: Array) -> Array:
    """Keep small values and put large ones into cells that do not depend on the data."""
    if values.dtype.itemsize == 1:
        return values
    size = np.abs(values.astype(np.int64))
    beyond = np.floor(8 * np.log2(np.maximum(size, 64) / 64)).astype(np.int64)
    cells: Integers = np.sign(values) * (np.minimum(size, 64) + beyond)
    return cells


def largest(comparisons: list[tuple[str, Array, Array]]) -> Finding:
    """Choose an event of each feature on the first halves, and bound it on the second halves."""
    level = ALPHA / (2 * len(comparisons))
    best = Finding(0.0, "no event is likelier under one answer than under another")
    for name, one, other in comparisons:
        middles = len(one) // 2, len(other) // 2
        event = likelier(one[: middles[0]], other[: middles[1]])
        if event is None:
            continue
        hits = int(np.isin(one[middles[0] :], event).sum())
        misses = int(np.isin(other[middles[1] :], event).sum())
        bound = log_ratio(
            np.array([hits]),
            len(one) - middles[0],
            np.array([misses]),
            len(other) - middles[1],
            level,
        )[0]
        if bound > best.bound:
            best = Finding(float(bound), f"{name} in {event[:5].tolist()}")
    return best


def likelier(one: Array, other: Array) -> Array | None:
    """The set of values that shows the largest ratio, by the same bound on these samples."""
    values, cells = np.unique(np.concatenate([one, other]), return_inverse=True)
    if values.size > MANY or values.size < 2:
        return None
    ours = np.bincount(cells[: one.size], minlength=values.size)
    theirs = np.bincount(cells[one.size :], minlength=values.size)
    order = np.argsort((theirs + 1) / (ours + 1), kind="stable")
    hits, misses = ours[order].cumsum(), theirs[order].cumsum()
    # A normal bound is enough to choose by.
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(1 / np.maximum(hits, 1) + 1 / (misses + 1))
        score = np.log(hits / one.size) - np.log((misses + 1) / other.size) - 5 * spread
    chosen: Array = values[order[: int(np.argmax(score)) + 1]]
    return chosen


def log_ratio(
    hits: Integers, trials: int, misses: Integers, others: int, level: float
) -> npt.NDArray[np.float64]:
    """Clopper and Pearson's lower bound of one probability over the upper bound of the other."""
    low = np.where(hits > 0, stats.beta.ppf(level, np.maximum(hits, 1), trials - hits + 1), 0.0)
    high = np.where(
        misses < others, stats.beta.ppf(1 - level, misses + 1, np.maximum(others - misses, 1)), 1.0
    )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(low) - np.log(high), dtype=np.float64)
