"""Models of the statistics of estimators.

Every estimator of a count is ``n (X - a) / b`` for a statistic ``X`` with the mean ``a + b f`` and
the variance ``v0 + v1 f + v2 f^2`` of a :class:`~turnout.collecting.intervals.StatisticModel`,
where ``f`` is the true frequency of the answer among ``n`` nodes.

Notation: ``C`` reports support the answer, ``S`` reports were received, a report supports the own
answer with probability ``p`` and any other fixed one with probability ``q``, ``d = p - q``. Of an
oracle whose reports hold scores instead, ``C`` is the sum of the scores and ``p``, ``q`` are their
means. The values are fixed; participation and perturbation are random.
"""

from __future__ import annotations

from dataclasses import dataclass

from turnout.collecting.intervals import StatisticModel


@dataclass(frozen=True)
class ScoreMoments:
    """The first two moments of a report's score of one answer.

    The score is 1 if the report supports the answer and 0 otherwise, so that both moments are the
    support probability, unless the oracle's reports hold other numbers.

    Parameters
    ----------
    own, other
        The mean of the score of the node's own answer, and of any other fixed answer.
    own_second, other_second
        The means of the squares.

    Examples
    --------
    >>> ScoreMoments.pure(0.75, 0.25).own_variance
    0.1875
    """

    own: float
    other: float
    own_second: float
    other_second: float

    @classmethod
    def pure(cls, p: float, q: float) -> ScoreMoments:
        """Return the moments of reports that support an answer or do not."""
        return cls(p, q, p, q)

    @property
    def is_pure(self) -> bool:
        """Whether reports support an answer or do not."""
        return (self.own, self.other) == (self.own_second, self.other_second)

    @property
    def difference(self) -> float:
        """The own mean less the other, the signal of a report."""
        return self.own - self.other

    @property
    def own_variance(self) -> float:
        """The variance of the score of the own answer."""
        return self.own_second - self.own * self.own

    @property
    def other_variance(self) -> float:
        """The variance of the score of another answer."""
        return self.other_second - self.other * self.other

    @property
    def own_excess(self) -> float:
        """The mean square of the own score less the mean of the others."""
        return self.own_second - 2 * self.other * self.own + self.other * self.other


@dataclass(frozen=True)
class PairSupport:
    """The joint support of two answers by a report.

    Of oracles whose reports hold scores, means of products stand for probabilities.

    Attributes
    ----------
    own
        The probability that a report supports the own answer and another fixed one.
    other
        The probability that it supports two fixed answers, neither of them the own one.
    aligned
        The latter where the own code, plus one, is the exclusive or of the other two, each plus
        one. It differs from ``other`` where a report that agrees with two of three such answers
        agrees with the third: in Hadamard response.

    Examples
    --------
    >>> PairSupport.independent(ScoreMoments.pure(0.75, 0.25))
    PairSupport(own=0.1875, other=0.0625, aligned=0.0625)
    """

    own: float
    other: float
    aligned: float

    @classmethod
    def alike(cls, own: float, other: float) -> PairSupport:
        """Return the support if no three answers are special."""
        return cls(own, other, other)

    @classmethod
    def independent(cls, scores: ScoreMoments) -> PairSupport:
        """Return the support if reports about different answers are independent."""
        return cls.alike(scores.own * scores.other, scores.other * scores.other)


def support_model(nodes: int, rate: float, scores: ScoreMoments) -> StatisticModel:
    """``X = C`` with a common rate: the estimators c, g and T.

    A node supports with probability ``rate r``, ``r`` being ``p`` or ``q``: C is a sum of
    independent Bernoulli variables. The sampling paper's Theorem 3.2 has this in the limit f -> 0;
    its full variance takes the square of the mean of ``r`` for the mean of the squares.
    """
    return personal_support_model(nodes, nodes * rate, nodes * rate * rate, scores)


def personal_support_model(
    nodes: int, total: float, total_of_squares: float, scores: ScoreMoments
) -> StatisticModel:
    """``X = C`` with personal probabilities that do not depend on the values: the estimator T.

    ``total`` and ``total_of_squares`` are the sums of the probabilities and of their squares over
    all nodes. The model assumes that values are assigned to the nodes at random. So the
    probabilities of the nodes that hold an answer are a simple random sample, and the variance of
    their sum is included.
    """
    p, q, d = scores.own, scores.other, scores.difference
    spread = max(total_of_squares - total * total / nodes, 0.0)
    assignment = nodes * d * d * spread / (nodes - 1) if nodes > 1 else 0.0
    second = scores.own_second - scores.other_second
    return StatisticModel(
        a=total * q,
        b=total * d,
        v0=total * scores.other_second - total_of_squares * q * q,
        v1=total * second - total_of_squares * (p * p - q * q) + assignment,
        v2=-assignment,
        trials=nodes if scores.is_pure else None,
    )


def excess_model(nodes: int, rate: float, scores: ScoreMoments) -> StatisticModel:
    """``X = C - S q`` with a common rate: the estimators c_hat and Horvitz-Thompson.

    The support and the number of reports are positively correlated, which the sampling paper's
    Theorem 3.5 leaves out: with the covariance, c_hat never has the larger variance.
    """
    d = scores.difference
    reports = nodes * rate
    return StatisticModel(
        a=0.0,
        b=reports * d,
        v0=reports * scores.other_variance,
        v1=reports * (scores.own_excess - scores.other_variance - rate * d * d),
    )


def ratio_model(nodes: int, received: int, scores: ScoreMoments) -> StatisticModel:
    """``X = C`` given ``S`` reports, with a common rate: the Hajek estimator.

    Given their number, the reporting nodes are a simple random sample without replacement. So the
    mean is exact, and the variance is the sum of that of the perturbation and a hypergeometric one.
    """
    d = scores.difference
    sampling = received * d * d * (nodes - received) / (nodes - 1) if nodes > 1 else 0.0
    return StatisticModel(
        a=received * scores.other,
        b=received * d,
        v0=received * scores.other_variance,
        v1=received * (scores.own_variance - scores.other_variance) + sampling,
        v2=-sampling,
        trials=received if scores.is_pure else None,
    )
