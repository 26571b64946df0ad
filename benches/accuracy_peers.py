"""How each program answers "how frequent is every answer", called as its authors do.

A collector takes the codes of those who take part and gives reports, then frequencies by one or
more estimators. The packages take one value at a time and know no participation: they get the
codes of those who happen to take part, and estimate shares of them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from peers import same

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[Any]

#: Frequencies, and the share of the 95 % intervals that hold the truth, if there are intervals.
Answer = tuple[Floats, float | None]

#: What a peer's estimator is called in the tables.
UNBIASED, PROJECTED, CLIPPED = "unbiased", "onto the simplex", "clipped, normalised"
LIKELIEST, PER_NODE = "maximum likelihood", "counts over all nodes"


@dataclass(frozen=True)
class Estimator:
    """One way from reports to frequencies.

    Parameters
    ----------
    name
        What it does.
    estimate
        Takes reports, the number of nodes, and the true frequencies, for the intervals alone.
    distribution
        Whether what it gives is made a distribution, at the price of a bias.
    partial_only
        Whether it differs from another one only where not everybody takes part.
    """

    name: str
    estimate: Callable[[Any, int, Floats], Answer]
    distribution: bool = False
    partial_only: bool = False


@dataclass(frozen=True)
class Collector:
    """One program's oracle: its client step and its estimators."""

    program: str
    oracle: str
    respond: Callable[[Codes, Any], Any]
    estimators: list[Estimator]


def own(turnout: ModuleType, epsilon: float, k: int) -> list[Collector]:
    """Return turnout's collectors: the oracle that it chooses, and unary encoding."""
    chosen = turnout.choose_oracle(epsilon=epsilon, domain_size=k).oracle
    unary = turnout.OptimizedUnaryEncoding(epsilon, k)
    hajek = Estimator("hajek", _hajek)
    ignored = Estimator("c, participation ignored", partial(_method, "c"), partial_only=True)
    return [
        Collector(
            "turnout",
            f"{chosen.name}, chosen".replace("_", " "),
            partial(_respond, chosen),
            [
                hajek,
                Estimator(f"hajek, {PROJECTED}", _projected, distribution=True),
                Estimator("hajek, shrunk", _shrunk, distribution=True),
                Estimator(
                    LIKELIEST,
                    partial(_likeliest, turnout.maximum_likelihood),
                    distribution=True,
                ),
                ignored,
            ],
        ),
        Collector("turnout", "optimized unary encoding", partial(_respond, unary), [hajek]),
    ]


def _respond(oracle: Any, codes: Codes, participation: Any) -> Any:
    return oracle, oracle.randomize(codes, participation=participation)


def _hajek(made: Any, _: int, truth: Floats) -> Answer:
    oracle, reports = made
    estimate = oracle.tally(reports).estimate()
    return estimate.frequencies, float(estimate.interval(0.95).contains(truth).mean())


def _method(method: str, made: Any, _: int, truth: Floats) -> Answer:
    oracle, reports = made
    return oracle.tally(reports).estimate(method).frequencies, None


def _projected(made: Any, _: int, truth: Floats) -> Answer:
    oracle, reports = made
    return oracle.tally(reports).estimate().project("simplex").frequencies, None


def _shrunk(made: Any, _: int, truth: Floats) -> Answer:
    oracle, reports = made
    return oracle.tally(reports).estimate().shrink().frequencies, None


def _likeliest(maximize: Callable[[Any], Any], made: Any, _: int, truth: Floats) -> Answer:
    return maximize(made[1]).frequencies, None


def pure_ldp(epsilon: float, k: int) -> list[Collector]:
    """Return pure-ldp's optimized unary encoding.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    unary = importlib.import_module("pure_ldp.frequency_oracles.unary_encoding")
    client = unary.UEClient(epsilon, k, use_oue=True, index_mapper=same)

    def respond(codes: Codes, _: Any) -> Any:
        return [client.privatise(code) for code in codes.tolist()]

    def counts(reports: Any, normalization: int) -> Floats:
        server = unary.UEServer(epsilon, k, use_oue=True, index_mapper=same)
        server.aggregate_all(reports)
        found = server.estimate_all(range(k), suppress_warnings=True, normalization=normalization)
        return np.asarray(found, float)

    def estimator(name: str, normalization: int, **options: bool) -> Estimator:
        def estimate(reports: Any, nodes: int, truth: Floats) -> Answer:
            size = nodes if options.get("partial_only") else len(reports)
            return counts(reports, normalization) / size, None

        return Estimator(name, estimate, **options)

    def projected(reports: Any, _: int, truth: Floats) -> Answer:
        found = counts(reports, 2)
        return found / found.sum(), None

    return [
        Collector(
            "pure-ldp",
            "optimized unary encoding",
            respond,
            [
                estimator(UNBIASED, 0),
                Estimator(PROJECTED, projected, distribution=True),
                estimator(PER_NODE, 0, partial_only=True),
            ],
        )
    ]


def multi_freq_ldpy(epsilon: float, k: int) -> list[Collector]:
    """Return multi-freq-ldpy's subset selection and optimized unary encoding.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    subsets = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.SS")
    unary = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.UE")

    def respond_subsets(codes: Codes, _: Any) -> Any:
        return [subsets.SS_Client(code, k, epsilon) for code in codes.tolist()]

    def respond_unary(codes: Codes, _: Any) -> Any:
        return [unary.UE_Client(code, k, epsilon, optimal=True) for code in codes.tolist()]

    def inverted(reports: Any, _: int, truth: Floats) -> Answer:
        return subsets.SS_Aggregator_MI(reports, k, epsilon), None

    def updated(reports: Any, _: int, truth: Floats) -> Answer:
        return subsets.SS_Aggregator_IBU(reports, k, epsilon), None

    def unary_inverted(reports: Any, _: int, truth: Floats) -> Answer:
        return unary.UE_Aggregator_MI(reports, epsilon, optimal=True), None

    name = "multi-freq-ldpy"
    return [
        Collector(
            name,
            "subset selection",
            respond_subsets,
            [
                Estimator(CLIPPED, inverted, distribution=True),
                Estimator("iterative Bayesian update", updated, distribution=True),
            ],
        ),
        Collector(
            name,
            "optimized unary encoding",
            respond_unary,
            [Estimator(CLIPPED, unary_inverted, distribution=True)],
        ),
    ]


def ldp_toolbox(epsilon: float, k: int) -> list[Collector]:
    """Return ldp-toolbox's subset selection and optimized unary encoding.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    package = "ldp_toolbox.protocols.frequency"
    subsets = importlib.import_module(f"{package}.ss").SubsetSelection(k, epsilon)
    unary = importlib.import_module(f"{package}.ue").UnaryEncoding(k, epsilon, optimal=True)

    def collector(oracle: str, protocol: Any) -> Collector:
        def respond(codes: Codes, _: Any) -> Any:
            return [protocol.obfuscate(code) for code in codes.tolist()]

        def estimate(reports: Any, _: int, truth: Floats) -> Answer:
            return protocol.estimate(reports), None

        estimators = [Estimator(CLIPPED, estimate, distribution=True)]
        return Collector("ldp-toolbox", oracle, respond, estimators)

    return [collector("subset selection", subsets), collector("optimized unary encoding", unary)]


def opendp(epsilon: float, k: int) -> list[Collector]:
    """Return OpenDP's randomized response, of an answer and of a vector of bits.

    The former has no estimator of its own: the inverse of its two probabilities is taken.

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1.0)
    answer = dp.m.make_randomized_response(list(range(k)), keep)
    flip = 2.0 / (1.0 + math.exp(epsilon / 2.0))
    bits = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=flip
    )
    rows = np.packbits(np.eye(k, dtype=np.uint8), axis=1, bitorder="little")
    vectors = [row.tobytes() for row in rows]

    def respond(codes: Codes, _: Any) -> Any:
        return [answer(code) for code in codes.tolist()]

    def inverted(reports: Any, _: int, truth: Floats) -> Answer:
        other = (1.0 - keep) / (k - 1)
        shares = np.bincount(reports, minlength=k) / len(reports)
        return (shares - other) / (keep - other), None

    def respond_bits(codes: Codes, _: Any) -> Any:
        return [bits(vectors[code]) for code in codes.tolist()]

    def debiased(reports: Any, _: int, truth: Floats) -> Answer:
        found = dp.m.debias_randomized_response_bitvec(reports, flip)
        return np.asarray(found, float)[:k] / len(reports), None

    def per_node(reports: Any, nodes: int, truth: Floats) -> Answer:
        found = dp.m.debias_randomized_response_bitvec(reports, flip)
        return np.asarray(found, float)[:k] / nodes, None

    return [
        Collector("OpenDP", "randomized response", respond, [Estimator("inverted", inverted)]),
        Collector(
            "OpenDP",
            "randomized response of bits (RAPPOR)",
            respond_bits,
            [
                Estimator("debiased", debiased),
                Estimator(PER_NODE, per_node, partial_only=True),
            ],
        ),
    ]


def distributions(collector: Collector) -> Collector:
    """Return a collector with those of its estimators alone that give a distribution."""
    return replace(collector, estimators=[one for one in collector.estimators if one.distribution])


#: The collectors of every peer, by its name on the package index.
PEERS: dict[str, Callable[[float, int], list[Collector]]] = {
    "pure-ldp": pure_ldp,
    "multi-freq-ldpy": multi_freq_ldpy,
    "ldp-toolbox": ldp_toolbox,
    "opendp": opendp,
}


def load(epsilon: float, k: int) -> tuple[list[Collector], dict[str, str]]:
    """Return the collectors of the peers that are installed, and why others are not to be had."""
    collectors, problems = [], {}
    for name, make in PEERS.items():
        try:
            collectors += make(epsilon, k)
        except ImportError as error:
            problems[name] = f"not installed: {error}"
        except Exception as error:  # a broken peer must not end the comparison
            problems[name] = f"failed: {type(error).__name__}: {error}"
    return collectors, problems
