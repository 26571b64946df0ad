"""An oracle with permanent answers, and the variances of its rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import count_variances
from turnout.frequency.longitudinal.client import MemoizedClient
from turnout.frequency.longitudinal.permanent import PermanentAnswers
from turnout.participation import stated_participation


class Memoized(PermanentAnswers):
    """Randomize each answer once, and this permanent answer afresh in every round.

    Fresh noise in every round averages out: after enough rounds everyone's answer is known. Here
    the mean over many rounds tends to the *permanent answer*, which an oracle with the lifetime
    epsilon made. It is never drawn again. It is derived from a secret that the client keeps, so it
    is the same after a restart, in a forked process and in a copy.

    As methods of an oracle, ``randomize``, ``collect`` and ``simulate`` draw permanent answers that
    are forgotten at once: a single round. Rounds of the same people go through :meth:`client` (one
    person) or :meth:`report` (a population); their tallies are those of this oracle.

    Parameters
    ----------
    oracle
        The oracle that makes the permanent answer: direct encoding, symmetric or optimized unary
        encoding. Its epsilon is the lifetime budget of one unchanged answer. Or that epsilon as a
        number, together with ``domain`` and ``permanent``.
    domain
        The answers, if ``oracle`` is a number.
    first_epsilon
        The budget of one report; below the lifetime budget.
    instantaneous
        The name of the oracle that randomizes the permanent answer; by default that of the
        permanent answer. The two unary encodings can be combined in any way.
    permanent
        The name of the oracle that makes the permanent answer, if ``oracle`` is a number.
    question
        A word for the question. Two questions of one client with equal plans must have different
        words. Otherwise equal answers to both would have one permanent answer, which shows that
        they are equal.
    permanent_per
        ``"answer"``: one permanent answer for each different answer, as in RAPPOR; returning to an
        earlier answer costs nothing, and becomes visible after enough rounds. ``"phase"``: a new
        permanent answer whenever the answer of a client changes, even if it changes back, so that a
        return looks like any other change.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range or ``first_epsilon`` is out of reach.

    Notes
    -----
    The guarantees, in exact numbers:

    * One report is ``first_epsilon``-private (:attr:`realized_epsilon`).
    * All reports of one unchanged answer together are :attr:`lifetime_epsilon`-private, however
      many rounds there are: they are a function of the permanent answer and of fresh noise.
    * Rounds do not compose: two reports may reveal more than twice what one does, up to
      :attr:`lifetime_epsilon`, since they share the permanent answer. (Direct encoding of 300
      answers with budgets of 4 and 1: two reports spend 2.9.)
    * ``d`` permanent answers spend ``d`` times as much, :meth:`spent`: all answers are protected to
      that degree, *given which reports share a permanent answer*. By phase: given the rounds in
      which the answer changes. By answer this is not enough, because a return is visible too: with
      a lifetime epsilon of 1, reports of 0.5 and three answers, 15 reports each of a, b, a and of
      a, b, c change in the same rounds, and delta at an epsilon of 3 is 0.56.
    * It is not protected which reports share a permanent answer: a permanent answer that differs
      from the last becomes visible after enough rounds. Between any two sequences of answers,
      changes and returns included, ``T`` reports spend at most :meth:`spent_by_reports`, about
      ``T`` times :attr:`round_epsilon`.

    Erlingsson, Pihur, Korolova, "RAPPOR: randomized aggregatable privacy-preserving ordinal
    response" (2014); the chains, called L-GRR, L-SUE, L-OUE, L-OSUE and L-SOUE, are those of
    Arcolezi, Couchot, Al Bouna, Xiao, "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates" (2022).

    Examples
    --------
    >>> import turnout as tn
    >>> memoized = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
    >>> memoized.realized_epsilon <= 1.0, memoized.lifetime_epsilon <= 4.0
    (True, True)
    >>> client = memoized.client(max_values=2)
    >>> reports = [client.report(1) for day in range(5)]
    >>> client.spent <= 4.0
    True
    """

    name = "memoized"

    def client(self, secret: bytes | None = None, *, max_values: int = 1) -> MemoizedClient:
        """Create the client of one person.

        Parameters
        ----------
        secret
            32 bytes that only this client knows; fresh from the operating system by default.
        max_values
            The number of permanent answers that the client may use in its life, see :meth:`spent`:
            different answers, or phases.

        Returns
        -------
        MemoizedClient
            The client. Store its :meth:`~MemoizedClient.to_bytes`.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the secret does not have 32 bytes, or ``max_values`` is not a number of answers.
        """
        return MemoizedClient(self, secret, max_values=max_values)


def permanent_variance(memoized: Memoized, true_counts: Any) -> Floats:
    """Compute the variance that remains after any number of rounds.

    It is also the covariance of the estimates ``"g"``, ``"c_hat"`` and ``"horvitz_thompson"`` of
    two rounds of the same nodes, at any common rate: the permanent answers are in both.

    Parameters
    ----------
    memoized
        The oracle.
    true_counts
        The number of nodes that hold each answer.

    Returns
    -------
    numpy.ndarray
        ``[F p1 (1 - p1) + (n - F) q1 (1 - q1)] / (p1 - q1)^2`` for each answer.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Given the permanent answers the rounds are independent, and the estimate of each has the mean
    ``sum over nodes of (1[the permanent answer supports i] - q1) / (p1 - q1)``: for a node the mean
    of ``1[report supports i] - q`` is ``(1[permanent] - q1) (p2 - q2)``, and
    ``p - q = (p1 - q1) (p2 - q2)``.
    """
    _arguments.instance("memoized", memoized, Memoized, "a Memoized oracle")
    counts = _arguments.counts("true_counts", true_counts, memoized.domain.size)
    held, nodes = counts.astype(np.float64), float(counts.sum())
    if nodes == 0:
        raise InvalidValueError("true_counts must hold a node, got none")
    own, other = memoized._permanent_covariances
    result: Floats = held * own + (nodes - held) * other
    return result


def rounds_variance(
    memoized: Memoized, rounds: int, true_counts: Any, *, rate: float = 1.0
) -> Floats:
    """Compute the variance of the mean over several rounds of the estimated counts.

    Parameters
    ----------
    memoized
        The oracle.
    rounds
        The number of rounds in which the same nodes report, without a change of answer.
    true_counts
        The number of nodes that hold each answer.
    rate
        The participation rate in a round, drawn afresh in each.

    Returns
    -------
    numpy.ndarray
        One variance for each answer, float64, in squared nodes, for ``"c_hat"`` and
        ``"horvitz_thompson"``: ``V/T + (1 - 1/T) P`` with the variance V of one round and the
        variance P of :func:`permanent_variance`, below which more rounds do not lead.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import turnout as tn
    >>> memoized = Memoized(tn.DirectEncoding(3.0, 4), first_epsilon=1.0)
    >>> counts = [4000, 3000, 2000, 1000]
    >>> one, many = (rounds_variance(memoized, rounds, counts)[0] for rounds in (1, 10_000))
    >>> floor = permanent_variance(memoized, counts)[0]
    >>> bool(floor < many < 1.01 * floor < one)
    True
    """
    number = _arguments.integer("rounds", rounds, least=1)
    floor = permanent_variance(memoized, true_counts)
    single = count_variances(memoized, stated_participation(rate), "c_hat", true_counts)
    return single / number + (1 - 1 / number) * floor
