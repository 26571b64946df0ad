"""An oracle behind which every answer has a permanent randomized one."""

from __future__ import annotations

from turnout.frequency.longitudinal.client import MemoizedClient
from turnout.frequency.longitudinal.permanent import PermanentAnswers

__all__ = ["Memoized"]


class Memoized(PermanentAnswers):
    """Randomize each answer once and for all, and that permanent answer afresh in every round.

    Fresh noise in every round averages out: after enough rounds everybody's answer is known. Here
    the mean over many rounds tends to the *permanent answer*, which an oracle of the lifetime
    epsilon made. It is never drawn again: it is derived from a secret that the client keeps, so
    that it is the same after a restart, in a forked process and in a copy.

    As an oracle, ``randomize``, ``collect`` and ``simulate`` draw permanent answers that are
    forgotten at once: one round on its own. Rounds of the same people go through :meth:`client`
    (one person) or :meth:`report` (a population); their tallies are those of this oracle.

    Parameters
    ----------
    oracle
        The oracle that makes the permanent answer: direct encoding, symmetric or optimized unary
        encoding. Its epsilon is the lifetime budget of one unchanged answer. Or that epsilon as a
        number; then ``domain`` and ``permanent`` say the rest.
    domain
        The answers, if ``oracle`` is a number.
    first_epsilon
        The budget of one report; below the lifetime budget.
    instantaneous
        The name of the oracle that randomizes the permanent answer; that of the permanent answer by
        default. Of the two unary encodings either goes with either.
    permanent
        The name of the oracle that makes the permanent answer, if ``oracle`` is a number.
    question
        A word for what is asked. Two questions of one client with equal plans must have two words,
        or equal answers to both would have one permanent answer, and show that they are equal.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range or ``first_epsilon`` is out of reach.

    Notes
    -----
    What holds, in exact numbers:

    * One report is ``first_epsilon``-private (:attr:`realized_epsilon`).
    * All reports of one unchanged answer together are :attr:`lifetime_epsilon`-private, however
      many rounds there are: they are a function of the permanent answer and of fresh noise.
    * Rounds do not compose: two reports may say more than twice what one does, up to
      :attr:`lifetime_epsilon`, since they share the permanent answer. (Direct encoding of 300
      answers with budgets of 4 and 1: two reports spend 2.9.)
    * A client that gives ``d`` different answers over time spends ``d`` times as much,
      :meth:`spent`: whatever those answers are is protected to that degree, *given the rounds in
      which they change*. That, and when, an answer changes is not: a permanent answer that differs
      from the last shows in enough rounds. Between any two sequences of answers, changes included,
      ``T`` reports spend at most ``T`` times :attr:`round_epsilon`.

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
        """Make the client of one person.

        Parameters
        ----------
        secret
            32 bytes that only this client knows; fresh from the operating system by default.
        max_values
            How many different answers the client may give in its life: see :meth:`spent`.

        Returns
        -------
        MemoizedClient
            Keep its :meth:`~MemoizedClient.to_bytes`.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the secret is not of 32 bytes, or the number is no number of answers.
        """
        return MemoizedClient(self, secret, max_values=max_values)
