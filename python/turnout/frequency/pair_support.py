"""How likely a report supports two answers at once: what covariances are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turnout.errors import EstimatorError

if TYPE_CHECKING:
    from turnout.frequency.oracle import FrequencyOracle

__all__ = ["PairSupport", "pair_support"]


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
    exact
        Whether ``other`` is the same for all answers, up to what ``aligned`` says. If not, it is
        its mean over the own answer or over hash functions.

    Examples
    --------
    >>> import turnout as tn
    >>> pair_support(tn.DirectEncoding(1.0, 4))
    PairSupport(own=0.0, other=0.0, aligned=0.0, exact=True)
    """

    own: float
    other: float
    aligned: float
    exact: bool = True


def pair_support(oracle: FrequencyOracle) -> PairSupport:
    """Compute the pair probabilities of an oracle.

    ``p`` and ``q`` are its support probabilities, ``k`` the size of the domain.

    ========================  ========================  =====================================
    oracle                    own and another           two others
    ========================  ========================  =====================================
    direct encoding           0                         0
    unary encodings           p q                       q^2
    subset selection, size d  p (d - 1) / (k - 1)       d (d - 1) / ((k - 1) (k - 2))
                                                        less 2 p (d - 1) / ((k - 1) (k - 2))
    local hashing             p q                       q^2
    Hadamard response         p / 2                     1/4, aligned p / 2
    projective geometry       p (r^(t-2) - 1)           the mean over the own answer
                              / (r^(t-1) - 1)
    ========================  ========================  =====================================

    Of local hashing and projective geometry they are means: a hash function that takes two codes
    apart may know where it takes a third, and a report on a line through two points is on all of
    it.

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
        If they are not known for this oracle.
    """
    scores = oracle.score_moments
    p, q, k = scores.own, scores.other, oracle.domain.size
    own, other = p * q, q * q
    aligned, exact = None, True
    parameters: Any = oracle
    name = oracle.name
    if name == "direct_encoding":
        own = other = 0.0
    elif name.endswith("unary_encoding") or name.startswith(
        ("threshold_histogram", "summation_histogram")
    ):
        pass
    elif name == "subset_selection":
        d = int(parameters.subset_size)
        own = p * (d - 1) / (k - 1)
        pairs = max((k - 1) * (k - 2), 1)
        other = (d - 1) * (d - 2 * p) / pairs if k > 2 else 0.0
    elif name == "hadamard_response":
        own, other, aligned = p / 2, 0.25, p / 2
    elif name.startswith("projective_geometry"):
        field, points = int(parameters.field_size), 1
        while points < k:
            points = points * field + 1
        # A hyperplane has (points - 1) / field points, a pair of them shares as many again.
        plane = (points - 1) // field
        line = (plane - 1) // field
        own = p * line / plane
        other = (line - 2 * own) / (points - 2)
        exact = False
    elif name in ("binary_local_hashing", "optimized_local_hashing"):
        exact = name == "binary_local_hashing"
    else:
        raise EstimatorError(f"the covariances of the estimates of {name!r} are not known")
    return PairSupport(own, other, other if aligned is None else aligned, exact)
