"""How likely a report supports two answers at once: what covariances are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnout.errors import EstimatorError

#: Oracles whose reports say independent things of different answers.
_INDEPENDENT = {
    "symmetric_unary_encoding",
    "optimized_unary_encoding",
    "threshold_histogram_encoding",
    "summation_histogram_encoding",
    "binary_local_hashing",
}


@dataclass(frozen=True)
class PairSupport:
    """What a report says about two answers at once.

    Of oracles whose reports hold scores, means of products stand for probabilities.

    Attributes
    ----------
    own
        How likely a report supports the own answer and another fixed one.
    other
        How likely it supports two fixed answers, neither of them the own one.
    aligned
        Of Hadamard response the latter where the own code is, plus one, the exclusive or of the
        other two, each plus one: a report that agrees with two of three such answers agrees with
        the third. Equal to ``other`` for other oracles.

    Examples
    --------
    >>> import turnout as tn
    >>> pair_support(tn.DirectEncoding(1.0, 4))
    PairSupport(own=0.0, other=0.0, aligned=0.0)
    """

    own: float
    other: float
    aligned: float


def pair_support(oracle: Any) -> PairSupport:
    """Compute the pair probabilities of an oracle.

    ``p`` and ``q`` are its support probabilities, ``k`` the size of the domain.

    ========================  ========================  =====================================
    oracle                    own and another           two others
    ========================  ========================  =====================================
    direct encoding           0                         0
    unary encodings           p q                       q^2
    subset selection, size d  p (d - 1) / (k - 1)       d (d - 1) / ((k - 1) (k - 2))
                                                        less 2 p (d - 1) / ((k - 1) (k - 2))
    binary local hashing      p q                       q^2
    Hadamard response         p / 2                     1/4, aligned p / 2
    ========================  ========================  =====================================

    They are not the same for all answers where reports of three answers hang together in more ways:
    a linear hash function that takes two codes to one of more than two buckets is likelier to take
    one between them there too, and a report on a line through two points of a projective geometry
    is on all of it; and fixed hash functions take some codes together in all reports.

    Parameters
    ----------
    oracle
        The randomizer.

    Returns
    -------
    PairSupport
        The probabilities.

    Raises
    ------
    EstimatorError
        If they are not the same for all answers.
    """
    if oracle.name == "joint_table":
        return pair_support(oracle.oracle)
    scores = oracle.score_moments
    p, q, k = scores.own, scores.other, oracle.domain.size
    own, other = p * q, q * q
    aligned = None
    name = oracle.name
    if name == "direct_encoding":
        own = other = 0.0
    elif name == "subset_selection":
        d = int(oracle.subset_size)
        own = p * (d - 1) / (k - 1)
        other = (d - 1) * (d - 2 * p) / ((k - 1) * (k - 2)) if k > 2 else 0.0
    elif name == "hadamard_response":
        own, other, aligned = p / 2, 0.25, p / 2
    elif name not in _INDEPENDENT or getattr(oracle, "seed_pool", None) is not None:
        raise EstimatorError(
            f"the covariances of the estimates of {name!r} do not follow from a tally: reports of "
            "different answers hang together in ways of their own; take the reports"
        )
    return PairSupport(own, other, other if aligned is None else aligned)
