"""The jobs that are compared, and who does each of them.

Direct encoding, ``epsilon`` 1, 100 codes: randomize, tally, and both at once with a tenth of the
nodes or all of them taking part; then the simulation of 1e12 nodes over 1,000 codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import reference
from machine import Cost
from measurement import Contender
from peers import Peer
from reference import Codes

EPSILON = 1.0
DOMAIN_SIZE = 100
PARTICIPATION = 0.1
SIMULATED_NODES = 10**12
SIMULATED_DOMAIN_SIZE = 1000


@dataclass(frozen=True)
class Layout:
    """The columns of a table.

    Parameters
    ----------
    columns
        Those that hold figures, in their order.
    ratios
        The columns that turnout is divided by, with the headings of the ratios; the target of a
        job is a ratio to the first.
    limited
        Whether the limit of the machine stands beside what turnout reaches.
    """

    columns: tuple[str, ...]
    ratios: dict[str, str]
    limited: bool = False

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of all columns."""
        limits = ("limit", "reached") if self.limited else ()
        return ("job", *self.columns, *self.ratios.values(), *limits, "target", "met?")


LAYOUT = Layout(
    columns=("turnout", "NumPy", "NumPy, tuned", "pure-ldp", "multi-freq-ldpy"),
    ratios={"NumPy": "ratio to NumPy", "NumPy, tuned": "to tuned"},
    limited=True,
)


@dataclass(frozen=True)
class Target:
    """What turnout must reach: a ratio to the column "NumPy" and to others, or a time for a call.

    Parameters
    ----------
    ratio
        The least ratio to the first of the columns that turnout is divided by.
    others
        The least ratio to further columns, by their names.
    seconds
        The longest time of a call.
    """

    ratio: float | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None

    def __str__(self) -> str:
        """Return the target as the table shows it."""
        if self.ratio is not None:
            others = (
                f", {least:g}x {name.rsplit(maxsplit=1)[-1]}" for name, least in self.others.items()
            )
            return f">= {self.ratio:g}x NumPy" + "".join(others)
        if self.seconds is None:
            return "-"
        if self.seconds < 1e-3:
            return f"< {self.seconds * 1e6:g} us"
        return f"< {self.seconds * 1e3:g} ms"

    def is_met(self, own: float, ratios: Mapping[str, float | None]) -> bool | None:
        """Return whether it is met; None if there is no target, or it could not be judged.

        Parameters
        ----------
        own
            The seconds of turnout's best call.
        ratios
            The ratios of the row, that to the column of :attr:`ratio` first.
        """
        if self.seconds is not None:
            return own < self.seconds
        if self.ratio is None:
            return None
        first, *_ = ratios
        judged = {first: self.ratio, **self.others}
        found = [(ratios[name], least) for name, least in judged.items()]
        if any(ratio is not None and ratio < least for ratio, least in found):
            return False
        return None if any(ratio is None for ratio, _ in found) else True


@dataclass(frozen=True)
class Job:
    """One row of the table.

    Parameters
    ----------
    name
        What is done, and on which codes.
    contenders
        Who does it; more than one for a column if there are several ways.
    target
        What turnout must reach.
    timed
        Whether the row shows the time of a call instead of nodes a second.
    nobody
        The columns that have nothing for this job.
    cost
        What a node, or a call that is timed, costs at least.
    """

    name: str
    contenders: list[Contender]
    target: Target = Target()
    timed: bool = False
    nobody: frozenset[str] = frozenset()
    cost: Cost | None = None


@dataclass(frozen=True)
class Inputs:
    """The codes that the jobs work on, drawn uniformly: wide, narrow, and short for the peers."""

    nodes: int
    peer_nodes: int
    wide: npt.NDArray[np.int64] = field(init=False)
    narrow: npt.NDArray[np.uint8] = field(init=False)
    short: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the codes; the same ones every time."""
        wide = np.random.default_rng(0).integers(0, DOMAIN_SIZE, self.nodes)
        object.__setattr__(self, "wide", wide)
        object.__setattr__(self, "narrow", wide.astype(np.uint8))
        object.__setattr__(self, "short", np.resize(wide, self.peer_nodes).tolist())


def build(turnout: ModuleType | None, peers: list[Peer], inputs: Inputs) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peers
        The peers that are installed.
    inputs
        The codes to work on.
    """
    return [
        _randomize(turnout, peers, inputs, inputs.wide),
        _randomize(turnout, [], inputs, inputs.narrow),
        _tally(turnout, peers, inputs),
        _collect(turnout, peers, inputs, inputs.wide, PARTICIPATION),
        _collect(turnout, [], inputs, inputs.narrow, PARTICIPATION),
        _collect(turnout, peers, inputs, inputs.wide, 1.0),
        _collect(turnout, [], inputs, inputs.narrow, 1.0),
        _simulate(turnout),
    ]


def _randomize(turnout: ModuleType | None, peers: list[Peer], inputs: Inputs, codes: Codes) -> Job:
    keep, rng = reference.keep_probability(EPSILON, DOMAIN_SIZE), np.random.default_rng()
    contenders = []
    if turnout is not None:
        call = partial(_oracle(turnout).randomize, codes)
        accept = _accept_reports(codes, lambda reports: reports.codes)
        contenders.append(Contender("turnout", "randomize", codes.size, call, accept))
    for column, programs in (
        ("NumPy", reference.PLAIN_RANDOMIZERS),
        ("NumPy, tuned", reference.TUNED_RANDOMIZERS),
    ):
        for variant, randomize in programs.items():
            call = partial(randomize, codes, DOMAIN_SIZE, keep, rng)
            accept = _accept_reports(codes, np.asarray)
            contenders.append(Contender(column, variant, codes.size, call, accept))
    for peer in peers:
        call = partial(peer.randomize, inputs.short)
        accept = _accept_reports(np.asarray(inputs.short), np.asarray)
        contenders.append(_peer_contender(peer, inputs, call, accept))
    # A report has one byte and takes half a word.
    cost = Cost(bytes=codes.itemsize + 1, words=0.5)
    return Job(f"randomize, {codes.dtype}", contenders, Target(ratio=5.0), cost=cost)


def _tally(turnout: ModuleType | None, peers: list[Peer], inputs: Inputs) -> Job:
    keep, rng = reference.keep_probability(EPSILON, DOMAIN_SIZE), np.random.default_rng(1)
    wide = reference.where(inputs.wide, DOMAIN_SIZE, keep, rng)
    narrow = wide.astype(np.uint8)
    contenders = []
    if turnout is not None:
        oracle = _oracle(turnout)
        reports = oracle.randomize(inputs.narrow)
        accept = _accept_counts_of(reports.codes, lambda tally: tally.support)
        call = partial(oracle.tally, reports)
        contenders.append(Contender("turnout", "tally", inputs.nodes, call, accept))
    programs: list[tuple[str, str, Callable[[], object]]] = [
        ("NumPy", "int64", partial(reference.bincount, wide, DOMAIN_SIZE)),
        ("NumPy", "uint8", partial(reference.bincount, narrow, DOMAIN_SIZE)),
        ("NumPy, tuned", "blocks", partial(reference.bincount_in_blocks, narrow, DOMAIN_SIZE)),
        ("NumPy, tuned", "pairs, blocks", partial(reference.bincount_pairs, narrow, DOMAIN_SIZE)),
    ]
    accept = _accept_counts_of(wide, np.asarray)
    for column, variant, program in programs:
        contenders.append(Contender(column, variant, inputs.nodes, program, accept))
    short = np.resize(wide, inputs.peer_nodes).tolist()
    for peer in peers:
        call = partial(peer.tally, short)
        contenders.append(_peer_contender(peer, inputs, call, _accept_peer_counts))
    return Job("tally", contenders, Target(ratio=2.0), cost=Cost(bytes=1))


def _collect(
    turnout: ModuleType | None,
    peers: list[Peer],
    inputs: Inputs,
    codes: Codes,
    participation: float,
) -> Job:
    keep, rng = reference.keep_probability(EPSILON, DOMAIN_SIZE), np.random.default_rng()
    contenders = []
    if turnout is not None:
        everyone = participation >= 1.0
        part = turnout.Everyone() if everyone else turnout.Bernoulli(participation)
        call = partial(_oracle(turnout).collect, codes, participation=part)
        accept = _accept_total(codes.size, participation, lambda tally: tally.support)
        contenders.append(Contender("turnout", "collect", codes.size, call, accept))
    for column, programs, block in (
        ("NumPy", reference.PLAIN_COLLECTORS, None),
        ("NumPy, tuned", reference.TUNED_COLLECTORS, reference.BLOCK),
    ):
        for variant, (select, randomize) in programs.items():
            chosen = partial(select, rate=participation, rng=rng)
            encoded = partial(randomize, k=DOMAIN_SIZE, keep=keep, rng=rng)
            call = partial(reference.collect, codes, DOMAIN_SIZE, chosen, encoded, block)
            accept = _accept_total(codes.size, participation, np.asarray)
            contenders.append(Contender(column, variant, codes.size, call, accept))
    for peer in peers:
        call = partial(peer.collect, inputs.short, participation)
        contenders.append(_peer_contender(peer, inputs, call, _accept_peer_counts))
    target = Target(ratio=15.0) if participation < 1.0 else Target()
    # Every code is read; who takes part costs half a word, and the report the other half.
    words = 0.5 if participation >= 1.0 else participation
    cost = Cost(bytes=codes.itemsize, words=words)
    return Job(f"collect at {participation:g}, {codes.dtype}", contenders, target, cost=cost)


def _simulate(turnout: ModuleType | None) -> Job:
    k, n = SIMULATED_DOMAIN_SIZE, SIMULATED_NODES
    true_counts = np.full(k, n // k, dtype=np.int64)
    keep, rng = reference.keep_probability(EPSILON, k), np.random.default_rng()
    contenders = []
    if turnout is not None:
        part = turnout.Bernoulli(PARTICIPATION)
        call = partial(_oracle(turnout, k).simulate, true_counts, participation=part)
        accept = _accept_total(n, PARTICIPATION, lambda tally: tally.support)
        contenders.append(Contender("turnout", "simulate", n, call, accept))
    accept = _accept_total(n, PARTICIPATION, np.asarray)
    for column, draw in (
        ("NumPy", reference.simulate),
        ("NumPy, tuned", reference.simulate_together),
    ):
        call = partial(draw, true_counts, keep, PARTICIPATION, rng)
        contenders.append(Contender(column, "law of the counts", n, call, accept))
    nobody = frozenset({"pure-ldp", "multi-freq-ldpy"})
    name = f"simulate n=1e12, k={k}, at {PARTICIPATION:g}"
    # Two binomial counts for each code, of two words each.
    cost = Cost(words=4.0 * k)
    return Job(name, contenders, Target(ratio=1.0), timed=True, nobody=nobody, cost=cost)


def _oracle(turnout: ModuleType, k: int = DOMAIN_SIZE) -> Any:
    return turnout.DirectEncoding(EPSILON, turnout.Domain.from_integers(k))


def _peer_contender(
    peer: Peer, inputs: Inputs, call: Callable[[], object], accept: Callable[[Any], bool]
) -> Contender:
    return Contender(peer.name, "documented calls", inputs.peer_nodes, call, accept)


def _accept_reports(codes: Codes, extract: Callable[[Any], Codes]) -> Callable[[Any], bool]:
    """Accept reports in the domain that show the true code about as often as they must."""
    ratio = math.exp(EPSILON)

    def accept(result: object) -> bool:
        reported = extract(result)
        if reported.shape != codes.shape or reported.min() < 0 or reported.max() >= DOMAIN_SIZE:
            return False
        same = int(np.count_nonzero(reported == codes))
        return _plausible(same, codes.size, ratio / (ratio + DOMAIN_SIZE - 1.0))

    return accept


def _accept_counts_of(codes: Codes, extract: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Accept the counts of these codes and nothing else."""
    counts = np.bincount(codes, minlength=DOMAIN_SIZE)
    return lambda result: bool(np.array_equal(extract(result), counts))


def _accept_total(nodes: int, rate: float, extract: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Accept counts whose total is a plausible number of participants."""
    return lambda result: _plausible(int(extract(result).sum()), nodes, rate)


def _accept_peer_counts(result: Sized) -> bool:
    """Accept a figure for every code; the peers differ in what the figure is."""
    return len(result) == DOMAIN_SIZE


def _plausible(successes: int, trials: int, probability: float) -> bool:
    """Return whether a binomial count is within six standard deviations of its mean."""
    deviation = abs(successes - trials * probability)
    return deviation <= 6.0 * math.sqrt(trials * probability * (1.0 - probability))
