"""A client of a training, and the update that it sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError, ProtocolError
from turnout.federated import draws
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.sums import add_gradients, check_trial, round_clip, structure_of, zeros

#: What entries of ledgers are labelled with.
LABEL = "federated training"


@dataclass(frozen=True, eq=False)
class Update:
    """The clipped sum or mean of a client's gradients, with its own noise in untrusted modes.

    It does not hold the number of sampled elements, which is private.

    Parameters
    ----------
    round
        The round that it answers, from 0.
    values
        One number for each parameter of the model: int64 in steps of the plan's grid, or float64
        where the plan has no exact noise.
    plan
        The fingerprint of the plan that it was made under.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> Update(0, np.array([3, -1]), "abc").values.dtype
    dtype('int64')
    """

    round: int
    values: Array
    plan: str

    def __post_init__(self) -> None:
        settle(self, round=_arguments.integer("round", self.round, least=0))
        values = self.values
        if (
            not isinstance(values, np.ndarray)
            or values.ndim != 1
            or values.dtype not in (np.dtype(np.int64), np.dtype(np.float64))
        ):
            raise _arguments.mistyped(
                "values must be a one-dimensional NumPy array of dtype int64 or float64",
                _arguments.Private(values),
            )
        _arguments.instance("plan", self.plan, str, "the fingerprint of a plan, text")

    def __repr__(self) -> str:
        """Show the round and the number of values, not the values."""
        return f"Update(round={self.round}, {self.values.size} values, {self.values.dtype})"


@dataclass(frozen=True, eq=False)
class Draw:
    """The private draws of a client for a round: show them to nobody.

    Attributes
    ----------
    round
        The round, from 0.
    takes_part
        Whether the client takes part.
    elements
        The indices of the sampled elements, ascending, int64. Empty if the client does not take
        part, and possibly if it does.
    """

    round: int
    takes_part: bool
    elements: Integers

    def __repr__(self) -> str:
        """Show only the round: the rest is private and must not get into a log."""
        return f"Draw(round={self.round})"


class Client:
    """A client, which draws its own participation and sample and keeps its own ledger.

    Parameters
    ----------
    plan
        The public parameters.
    size
        The number of its elements, from 0 to the plan's ``local_size``.
    parameters
        The model, as nested arrays of its parameters: gradients must have the same form. Or the
        number of parameters, for gradients in one array.
    index
        Its number among the clients. It matters in seeded studies only.
    ledger
        Its own ledger. If None, it is a new one with the plan's target as its budget, or no ledger
        if the plan has no target.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a ledger is given and the plan has
        no noise.

    Notes
    -----
    The ledger pays when a round is drawn, whether the client takes part or not. The round costs so
    little only because the client might not take part. The ledger needs to know nothing about other
    clients. If a process may end between rounds, save the ledger before you send the answer, and
    pass it to the next process.

    An exception of :meth:`update` may reveal how many elements were sampled: show it to nobody but
    the client. The same holds for the time that gradients take. Do not use one object in several
    threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     1.0, 1.0, clip=1.0, noise_multiplier=2.0, local_size=2, mode="trusted_server"
    ... )
    >>> client = Client(plan, 2, parameters=3)
    >>> gradients = np.array([[3.0, 0.0, 4.0], [0.0, 0.5, 0.0]])
    >>> update = client.answer(0, lambda elements: gradients[elements])
    >>> (update.values * plan.grid.step).round(3)
    array([0.6, 0.5, 0.8])
    """

    #: The public parameters.
    plan: Final[RandomParticipationSGD]
    #: How many elements it has.
    size: Final[int]
    #: Its own ledger.
    ledger: Final[PrivacyLedger | None]

    def __init__(
        self,
        plan: RandomParticipationSGD,
        size: int,
        *,
        parameters: Any,
        index: int = 0,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.plan = plan
        self.size = _arguments.integer("size", size, least=0)
        bound = plan.local_size
        if bound is not None and self.size > bound:
            raise InvalidValueError(
                f"size must be at most local_size = {bound}, on which the accounting rests, "
                f"got {self.size} elements"
            )
        if plan.grid is not None and plan.unit == "element":
            plan.grid.check_examples("size", self.size)
        self._structure = structure_of(parameters)
        self._index = _arguments.integer("index", index, least=0, most=2**40)
        self.ledger = accepted_ledger(plan, ledger)
        self._open: Draw | None = None
        self._next = 0
        self._tried = False

    def draw(self, round: int) -> Draw:  # noqa: A002 (the field's word)
        """Pay for a round, then draw the participation and the sample.

        Parameters
        ----------
        round
            The number of the round, above that of every earlier draw. Otherwise a round that is
            asked for twice would yield two samples for the price of one.

        Returns
        -------
        Draw
            The draws, which are private. Pass them to :meth:`update` or :meth:`silence`.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for the round. Nothing is drawn.
        ProtocolError
            If the round is not above the last one.
        InvalidTypeError, InvalidValueError
            If ``round`` is not an integer of at least 0.
        """
        number = _arguments.integer("round", round, least=0, most=2**62)
        if number < self._next:
            raise ProtocolError(
                f"round must be above {self._next - 1}, the last that was drawn, got {number}"
            )
        if self.ledger is not None:
            assert self.plan.mechanism is not None
            self.ledger.spend(self.plan.mechanism, label=LABEL)
        self._next = number + 1
        part = draws.takes_part(self.plan, self._index, number)
        elements = np.empty(0, np.int64)
        if part:
            elements = draws.elements(self.plan, self.size, self._index, number)
        self._open = Draw(number, part, elements)
        return self._open

    def update(self, draw: Draw, gradients: Any, *, clip: float | None = None) -> Update:
        """Clip the gradients of the sampled elements, add them up and make the sum safe to send.

        Parameters
        ----------
        draw
            The result of :meth:`draw` for a round that this client takes part in.
        gradients
            One gradient for each element of ``draw.elements``: an array-like (examples,
            parameters), or nested lists, tuples and dicts of arrays (examples, ...). The numbers
            are float32 or float64, in any object that NumPy or DLPack can read. Ignored if no
            element was sampled. With noise a gradient that is not finite counts as zero: an error
            would reveal that its element exists. Where a client is the unit, pass any number of
            gradients, at least one: their mean is clipped, and counts as zero if it is not finite.
        clip
            The clip of the round, from the server, if the plan has ``adaptive_clipping``; else
            None.

        Returns
        -------
        Update
            An update that is safe to send to the server, as far as the mode trusts it. Under a plan
            with ``secure_sum`` it has a share of the noise only: give it to the aggregators in
            secret shares, and to nobody whole.

        Raises
        ------
        ProtocolError
            If the draw is not this client's last one, was answered before, or does not take part in
            the round.
        InvalidTypeError, InvalidValueError
            If gradients have a wrong shape or dtype; without noise also if they are not finite. The
            draw stays open.
        """
        self._check(draw)
        if not draw.takes_part:
            raise ProtocolError(f"the client does not take part in round {draw.round}: use silence")
        at = round_clip(self.plan, clip)
        counts = [draw.elements.size]
        values, _ = add_gradients(self.plan, gradients, counts, self._structure, at)
        return self._closed(draw, values)

    def silence(self, draw: Draw) -> Update | None:
        """Return what a client sends without gradients: it does not take part, or computing failed.

        Parameters
        ----------
        draw
            The result of :meth:`draw` for a round that this client does not take part in. In a mode
            in which clients have noise of their own, for any round.

        Returns
        -------
        Update or None
            Noise alone in the mode ``"always_send"`` and from a client that takes part. Otherwise
            None: send nothing.

        Raises
        ------
        ProtocolError
            If the draw is not this client's last one or was answered before; in the mode
            ``"trusted_server"`` also if it takes part.
        """
        self._check(draw)
        if draw.takes_part and self.plan.mode == "trusted_server":
            raise ProtocolError(f"the client takes part in round {draw.round}: use update")
        if not draw.takes_part and self.plan.mode != "always_send":
            self._open = None
            return None
        return self._closed(draw, zeros(self.plan, self._structure.total))

    def answer(
        self,
        round: int,  # noqa: A002 (the field's word)
        gradients_of: Callable[[Integers], Any],
        *,
        trial: Callable[[], Any] | None = None,
        clip: float | None = None,
    ) -> Update | None:
        """Do a whole round: draw, compute gradients if elements were sampled, and answer.

        Parameters
        ----------
        round
            As for :meth:`draw`.
        gradients_of
            A function that takes indices of elements and returns their gradients, as for
            :meth:`update`. It is not called if no element was sampled. The gradient of an element
            must not depend on the others: :func:`~turnout.federated.one_at_a_time` computes each
            alone.
        trial
            ``trial()`` returns the gradients of a few made-up elements at the same model, which
            hold nothing of the client's data. It is called before the client's first round is paid.
            An error that concerns every element is found before anything is spent, and reveals
            nothing about the data. Without it the client cannot report that all its gradients are
            NaN, since that would reveal something about the data: it sends zero with noise, and
            pays.
        clip
            As for :meth:`update`.

        Returns
        -------
        Update or None
            The update to send; None if there is nothing to send.

        Raises
        ------
        BudgetExceededError, ProtocolError, InvalidTypeError, InvalidValueError
            As for :meth:`draw` and :meth:`update`. If the gradients of the trial have a wrong shape
            or dtype, or none of them is finite, nothing is paid or drawn.
        """
        if trial is not None and not self._tried:
            check_trial(trial(), None, self._structure)
            self._tried = True
        round_clip(self.plan, clip)
        draw = self.draw(round)
        if not draw.takes_part:
            return self.silence(draw)
        gradients = gradients_of(draw.elements) if draw.elements.size else None
        return self.update(draw, gradients, clip=clip)

    def __repr__(self) -> str:
        """Show the public part of the client."""
        return f"Client(index={self._index}, next round {self._next})"

    def _check(self, draw: Draw) -> None:
        _arguments.instance("draw", draw, Draw, "what this client's draw gave")
        if draw is not self._open:
            raise ProtocolError(
                f"draw must be the client's last one, not yet answered, got {draw!r}"
            )

    def _closed(self, draw: Draw, values: Array) -> Update:
        values = draws.made_safe(self.plan, values, self._index, draw.round)
        self._open = None
        return Update(draw.round, values, self.plan.fingerprint)


def accepted_ledger(
    plan: RandomParticipationSGD, ledger: PrivacyLedger | None
) -> PrivacyLedger | None:
    """Return the checked ledger of a client or server, or a new one with the plan's target."""
    if ledger is None:
        return plan.ledger()
    _arguments.instance("ledger", ledger, PrivacyLedger, "a PrivacyLedger")
    if plan.mechanism is None:
        raise InvalidValueError(
            "ledger must be None with noise = 'none': no budget pays for a release without noise"
        )
    if ledger.adjacency not in plan.mechanism.adjacencies:
        known = ", ".join(repr(word) for word in plan.mechanism.adjacencies)
        raise _arguments.mistyped(f"ledger must have an adjacency among {known}", ledger.adjacency)
    return ledger
