"""The half of a client, and what it sends."""

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
from turnout.federated.sums import add_gradients, check_trial, structure_of, zeros

#: What entries of ledgers are labelled with.
LABEL = "federated training"


@dataclass(frozen=True, eq=False)
class Update:
    """The clipped sum or mean of a client's gradients; in untrusted modes with its own noise.

    It does not say how many elements were sampled, which is private.

    Parameters
    ----------
    round
        The round it answers, from 0.
    values
        One number for each parameter of the model: int64 in steps of the plan's grid, or float64
        where the plan has no exact noise.
    plan
        The fingerprint of the plan it was made under.

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
        """Show what it is, not what it holds."""
        return f"Update(round={self.round}, {self.values.size} values, {self.values.dtype})"


@dataclass(frozen=True, eq=False)
class Draw:
    """What a client drew for a round. It is private: nothing of it may be shown to anybody.

    Attributes
    ----------
    round
        The round, from 0.
    takes_part
        Whether the client takes part.
    elements
        The indices of the sampled elements, ascending, int64; none if it does not take part, and
        perhaps none if it does.
    """

    round: int
    takes_part: bool
    elements: Integers

    def __repr__(self) -> str:
        """Show the round only; the rest is private and must not get into a log."""
        return f"Draw(round={self.round})"


class Client:
    """One client: it draws its own participation and sample, and keeps its own ledger.

    Parameters
    ----------
    plan
        The public parameters.
    size
        How many elements it has, from 0 to the plan's ``local_size``.
    parameters
        The model: a nest of arrays of its parameters, whose form gradients must have; or how many
        there are, for gradients in one array.
    index
        Its number among the clients; matters in seeded studies only.
    ledger
        Its own ledger; one with the plan's target if None, or none if there is no target.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or there is a ledger and no noise.

    Notes
    -----
    The ledger pays when a round is drawn, whether the client takes part or not: that it may not
    is what makes the round cheap. It needs to know nothing of other clients. Whoever ends a process
    saves the ledger before the answer is sent, and gives it to the next one.

    An exception of :meth:`update` may tell how many elements were sampled: it is for the client's
    own eyes. So is the time that gradients take. An object is not for several threads at once.

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
        """Pay for a round, then draw participation and sample.

        Parameters
        ----------
        round
            The number of the round, above that of every earlier draw: a round that is asked for
            twice would otherwise give two samples for the price of one.

        Returns
        -------
        Draw
            Private; hand it to :meth:`update` or :meth:`silence`.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay. Nothing is drawn.
        ProtocolError
            If the round is not above the last one.
        InvalidTypeError, InvalidValueError
            If ``round`` is no integer of at least 0.
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

    def update(self, draw: Draw, gradients: Any) -> Update:
        """Clip the gradients of the sampled elements, add them up, and make them safe to send.

        Parameters
        ----------
        draw
            What :meth:`draw` gave, of a round that this client takes part in.
        gradients
            One gradient for each element of ``draw.elements``: an array-like (examples,
            parameters), or a nest of lists, tuples and dicts of arrays (examples, ...). float32 or
            float64, of anything that NumPy or DLPack can read. Ignored if no element was sampled.
            With noise a gradient that is not finite counts as zero: an error would tell that its
            element is there. Where a client is the unit any number of gradients is taken, one at
            least: their mean is clipped, and counts as zero if it is not finite.

        Returns
        -------
        Update
            Ready to send to the server that the mode trusts so far.

        Raises
        ------
        ProtocolError
            If the draw is not this client's last one, was answered before, or does not take part.
        InvalidTypeError, InvalidValueError
            If gradients have another shape or dtype; without noise also if they are not finite.
            The draw stays open.
        """
        self._check(draw)
        if not draw.takes_part:
            raise ProtocolError(f"the client does not take part in round {draw.round}: use silence")
        values, _ = add_gradients(self.plan, gradients, [draw.elements.size], self._structure)
        return self._closed(draw, values)

    def silence(self, draw: Draw) -> Update | None:
        """Give what a client sends that does not take part, or that could not compute gradients.

        Parameters
        ----------
        draw
            What :meth:`draw` gave: of a round that this client does not take part in or, in a mode
            in which clients have noise of their own, of any round.

        Returns
        -------
        Update or None
            Noise alone in the mode ``"always_send"`` and from a client that takes part; None
            otherwise: nothing is sent.

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
    ) -> Update | None:
        """Do a whole round: draw, compute gradients if elements were sampled, answer.

        Parameters
        ----------
        round
            As for :meth:`draw`.
        gradients_of
            Gives the gradients of the elements with these indices, as for :meth:`update`. It is not
            called if none was sampled. The gradient of an element must not depend on the others:
            :func:`~turnout.federated.one_at_a_time` computes each alone.
        trial
            ``trial()`` gives the gradients of a few made-up elements at the same model, which hold
            nothing of the client's data. It is called before the client's first round is paid:
            what is wrong for every element is found before anything is spent, and the error tells
            nothing of the data. Without it the client cannot say that all its gradients are NaN,
            since that would tell of them: it sends zero with noise and pays.

        Returns
        -------
        Update or None
            What is to be sent; None if nothing is.

        Raises
        ------
        BudgetExceededError, ProtocolError, InvalidTypeError, InvalidValueError
            As for :meth:`draw` and :meth:`update`. If the gradients of the trial have another shape
            or dtype, or none of them is finite, nothing is paid or drawn.
        """
        if trial is not None and not self._tried:
            check_trial(trial(), None, self._structure)
            self._tried = True
        draw = self.draw(round)
        if not draw.takes_part:
            return self.silence(draw)
        return self.update(draw, gradients_of(draw.elements) if draw.elements.size else None)

    def __repr__(self) -> str:
        """Show what is public."""
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
    """Check the ledger of a half, or make one with the plan's target."""
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
