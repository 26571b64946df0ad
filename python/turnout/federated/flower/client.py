"""The client side: a mod for any ClientApp, and a ready ClientApp around one function."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from logging import ERROR
from typing import Any, TypeAlias

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod
from flwr.common.logger import log

from turnout import _arguments
from turnout._types import Integers
from turnout.accounting import PrivacyLedger
from turnout.errors import ProtocolError, TurnoutError
from turnout.federated import Client, RandomParticipationSGD, Update
from turnout.federated.client import LABEL, Draw
from turnout.federated.flower import records
from turnout.federated.flower.kept import node_ledger
from turnout.federated.sums import check_trial
from turnout.federated.trees import Structure

Indices: TypeAlias = Integers
#: Gives a node's number of elements, and the gradients of some of them at a model.
LocalData: TypeAlias = Callable[[Context], tuple[int, Callable[[Any, Indices], Any]]]
_Plan: TypeAlias = RandomParticipationSGD | Callable[[Context], RandomParticipationSGD] | None

_STATE = "turnout.training"
_TRIED = "turnout-trial"


def participation_mod(
    size: int | Callable[[Context], int],
    *,
    budget: PrivacyLedger | None = None,
    plan: _Plan = None,
    size_bound: int | None = None,
    trusts_server: bool = False,
    least_seconds: float = 0.0,
    trial: Callable[[Any], Any] | None = None,
) -> Mod:
    """Make the mod that lets a ClientApp take part at random.

    Of every train message the mod checks the plan, pays for the round from the node's ledger, and
    draws whether the node takes part and with which elements. Only if elements were drawn is the
    project's train handler called: :func:`sampled_elements` gives it their indices, and it replies
    with an ``ArrayRecord`` of *per-example* gradients: the names of the model's arrays, each
    with one more axis in front, the examples. What leaves the node is the mod's: the clipped,
    truncated and added gradients, in untrusted modes with noise. **All other records of the reply
    are dropped**, metrics included, since nothing pays for them. Messages of other types (evaluate,
    query) pass untouched: what a project answers to them is not covered by the guarantee.

    Parameters
    ----------
    size
        How many elements the node has, or a function of its context.
    budget
        A new ledger that a node starts from which has none yet. If the node's configuration has
        ``turnout-ledger``, the ledger is that file; what it says counts, not ``budget``. Otherwise
        it is kept in ``context.state``, which Flower forgets when the run or the SuperNode ends.
    plan
        The one plan that the node accepts, or a function of its context. If None every plan of the
        server with exact noise and without a seed is accepted that the ledger pays for, and there
        must be a ledger; it then pays for one kind of round only, that of the first, since a server
        that chose the next kind by what it has seen could get more than the budget. A plan with a
        seed, with ``noise="float"`` or ``"none"`` protects nobody and is accepted only if it is
        given here.
    size_bound
        A public number that the node has no more elements than; ``size`` if None and that is a
        number. Without ``plan`` a plan whose accounting rests on a ``local_size`` is accepted
        only if it is at least this. The true size is not compared with what a server asks for:
        refusals would tell it.
    trusts_server
        Whether the mode ``"trusted_server"`` is accepted without ``plan``: the server and the
        SuperLink then see the node's sums without noise.
    least_seconds
        In the mode ``"always_send"``, how long after a message the node replies at the earliest.
        If it is longer than gradients take, the time of the reply does not tell who takes part.
    trial
        ``trial(parameters)`` gives the gradients of a few made-up elements at the model, of the
        same code as those of real ones. A node calls it before it pays for its first round: if they
        have another shape or dtype, or none is finite, it replies with the reason and pays nothing.
        The reply tells nothing of the node's data, since nothing of them is in it.

    Returns
    -------
    Mod
        For ``ClientApp(mods=[...])``; the last of the list, so that no other mod sees gradients on
        their way out.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    A message that is refused (no budget left, another plan, a round that was answered) gets an
    error reply of Flower's code 6 with the reason. If the project's handler fails, the details stay
    in the node's log, since a message of an exception may quote data; in modes that do not trust
    the server the node then sends noise alone, since an error would tell of its elements. A single
    gradient that is not finite counts as zero.

    A handler that fails because of one element takes the gradients of all others away: that is more
    than the noise hides. It must give some gradient for every element, zero if there is no better.

    Examples
    --------
    >>> from flwr.clientapp import ClientApp
    >>> from turnout.accounting import PrivacyLedger
    >>> mod = participation_mod(30, budget=PrivacyLedger(epsilon=1.0, delta=1e-5))
    >>> app = ClientApp(mods=[mod])
    """
    if not callable(size):
        _arguments.integer("size", size, least=0)
        size_bound = size if size_bound is None else size_bound
    node = _Node(budget, plan, size_bound, trusts_server, least_seconds, trial)

    def turnout_participation(
        message: Message, context: Context, call_next: ClientAppCallable
    ) -> Message:
        if message.metadata.message_type.split(".")[0] != "train":
            return call_next(message, context)

        def gradients_of(model: Any, elements: Indices) -> Any:
            message.content[records.DRAW] = ConfigRecord({"elements": elements.tolist()})
            return records.gradients_of(call_next(message, context), model)

        def local(context: Context) -> tuple[int, Callable[[Any, Indices], Any]]:
            return size(context) if callable(size) else size, gradients_of

        return node.answer(message, context, local)

    return turnout_participation


def client_app(
    local: LocalData,
    *,
    budget: PrivacyLedger | None = None,
    plan: _Plan = None,
    size_bound: int | None = None,
    trusts_server: bool = False,
    least_seconds: float = 0.0,
    trial: Callable[[Any], Any] | None = None,
) -> ClientApp:
    """Make a ClientApp that trains with random participation.

    Parameters
    ----------
    local
        A function of the node's context that gives two things: how many elements the node has, and
        a function ``gradients_of(parameters, elements)`` that gives the gradient of each of these
        elements: a tree like the parameters with one more axis in front, or an array (examples,
        parameters). It is called only if elements were drawn. The parameters are nested as the
        server's model is.
    budget, plan, size_bound, trusts_server, least_seconds, trial
        As for :func:`participation_mod`.

    Returns
    -------
    flwr.clientapp.ClientApp
        Ready to be named in ``pyproject.toml``. Handlers for evaluate and query messages may be
        added to it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    The mean of the node's numbers, by gradients of squares:

    >>> import numpy as np
    >>> from turnout.accounting import PrivacyLedger
    >>> def local(context):
    ...     numbers = np.array([1.0, 2.0, 4.0])
    ...     return 3, lambda mean, elements: mean - numbers[elements, None]
    >>> app = client_app(local, budget=PrivacyLedger(epsilon=1.0, delta=1e-5), size_bound=10)
    """
    if not callable(local):
        raise _arguments.mistyped("local must be a function of the node's context", local)
    node = _Node(budget, plan, size_bound, trusts_server, least_seconds, trial)
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return node.answer(message, context, local)

    return app


@dataclass(frozen=True)
class _Node:
    """The checks, the payment and the answer of one node."""

    budget: PrivacyLedger | None
    plan: _Plan
    size_bound: int | None
    trusts_server: bool
    least_seconds: float
    trial: Callable[[Any], Any] | None

    def __post_init__(self) -> None:
        if self.budget is not None:
            _arguments.instance("budget", self.budget, PrivacyLedger, "a PrivacyLedger or None")
        if not (self.plan is None or callable(self.plan)):
            expected = "a plan, a function that gives it, or None"
            _arguments.instance("plan", self.plan, RandomParticipationSGD, expected)
        if self.size_bound is not None:
            _arguments.integer("size_bound", self.size_bound, least=0)
        _arguments.instance("trusts_server", self.trusts_server, bool, "True or False")
        least = _arguments.number("least_seconds", self.least_seconds)
        if not 0.0 <= least < float("inf"):
            raise _arguments.invalid("least_seconds must be finite and at least 0", least)
        if not (self.trial is None or callable(self.trial)):
            raise _arguments.mistyped("trial must be a function of the model, or None", self.trial)

    def answer(self, message: Message, context: Context, local: LocalData) -> Message:
        """Answer a train message."""
        begin = time.monotonic()
        try:
            model, structure = records.model_of(message.content)
            plan = self._accepted(message, context)
            self._try(context, model, structure)
        except TurnoutError as error:
            return records.refusal(message, error)
        try:
            size, gradients_of = local(context)
            if self.size_bound is not None:
                _arguments.integer("size", size, least=0, most=self.size_bound)
        except Exception:
            return _failure(message, "the local data could not be read")
        try:
            client, draw = self._drawn(message, context, plan, size, structure)
        except (TurnoutError, OSError) as error:
            return records.refusal(message, error)
        update: Update | None
        if draw.takes_part:
            try:
                sampled = draw.elements.size > 0
                gradients = gradients_of(model, draw.elements) if sampled else None
                update = client.update(draw, gradients)
            except Exception:
                reply = _failure(message, "the gradients could not be computed")
                if plan.mode == "trusted_server":
                    return reply
                # An error would tell of the elements: noise alone does not.
                update = client.silence(draw)
        else:
            update = client.silence(draw)
        if plan.mode == "always_send":
            time.sleep(max(0.0, begin + self.least_seconds - time.monotonic()))
        return records.reply_of(message, update)

    def _accepted(self, message: Message, context: Context) -> RandomParticipationSGD:
        plan = records.plan_of(records.round_of(message.content))
        own = self.plan(context) if callable(self.plan) else self.plan
        if own is not None:
            if plan != own:
                raise ProtocolError(f"the node accepts the plan {own!r} only, got {plan!r}")
            return plan
        if plan.seed is not None or plan.noise != "exact":
            raise ProtocolError(
                "a plan with a seed or without exact noise protects nobody, and is accepted only "
                f"if it is given on the node, got {plan!r}"
            )
        needed, stated = plan.local_size, self.size_bound
        if needed is not None and (stated is None or needed < stated):
            raise ProtocolError(
                f"the plan rests on local_size = {needed}, and the node "
                + (
                    "has stated no bound on its number of elements: give it size_bound or plan"
                    if stated is None
                    else f"may have up to size_bound = {stated} elements"
                )
            )
        if plan.mode == "trusted_server" and not self.trusts_server:
            raise ProtocolError(
                "the mode 'trusted_server' sends sums without noise, and the node does not trust "
                "the server: train in another mode, or say trusts_server=True on the node"
            )
        return plan

    def _try(self, context: Context, model: Any, structure: Structure) -> None:
        """Compute gradients of made-up elements, once in a run; what is wrong may be told."""
        if self.trial is None or _TRIED in context.state:
            return
        try:
            gradients = self.trial(model)
        except Exception as error:
            raise ProtocolError("the trial of the gradients failed: see the node's log") from error
        try:
            check_trial(gradients, None, structure)
        except TurnoutError as error:
            raise ProtocolError(f"the trial of the gradients failed: {error}") from error
        context.state[_TRIED] = ConfigRecord({"trial": True})

    def _drawn(
        self,
        message: Message,
        context: Context,
        plan: RandomParticipationSGD,
        size: int,
        structure: Structure,
    ) -> tuple[Client, Draw]:
        """Pay for the round, then draw; what was paid is written down on return."""
        number = int(records.round_of(message.content)["round"])  # type: ignore[arg-type]
        _check_new(context, plan, number)
        budget = self.budget
        if budget is None and self.plan is not None:
            budget = plan.ledger()
        with node_ledger(context, budget) as ledger:
            if ledger is None and self.plan is None:
                raise ProtocolError(
                    "the node has no ledger that could pay for the round: give it a budget, or "
                    "name the file of its ledger in the node's configuration"
                )
            if ledger is not None and self.plan is None:
                _check_kind(ledger, plan)
            index = 0 if plan.seed is None else records.partition(context)
            client = Client(plan, size, parameters=structure, index=index, ledger=ledger)
            draw = client.draw(number)
        context.state[_STATE] = ConfigRecord({"plan": plan.fingerprint, "round": number})
        return client, draw


def _check_new(context: Context, plan: RandomParticipationSGD, number: int) -> None:
    """Refuse a round that was drawn before in this run."""
    record = context.state.config_records.get(_STATE)
    if record is None or record["plan"] != plan.fingerprint:
        return
    last = int(record["round"])  # type: ignore[arg-type]
    if number <= last:
        raise ProtocolError(
            f"round must be above {last}, the last that the node answered, got {number}"
        )


def _check_kind(ledger: PrivacyLedger, plan: RandomParticipationSGD) -> None:
    """Refuse another kind of round than was paid for, if the server chooses what it is.

    Composition bounds the total of kinds that do not depend on results. One that is chosen by what
    was seen can bring delta to almost twice that of the budget, and more with more choices.
    """
    for entry in ledger.entries:
        if entry.label == LABEL and entry.mechanism != plan.mechanism:
            raise ProtocolError(
                f"the node's ledger has paid for rounds of {entry.mechanism!r} and pays for no "
                f"other kind that the server chooses, got {plan.mechanism!r}: name the plan on the "
                "node"
            )


def _failure(message: Message, reason: str) -> Message:
    """Reply that something failed; what it was stays in the node's log."""
    log(ERROR, "turnout: %s", reason, exc_info=True)
    return records.refused(message, f"{reason}: see the node's log")
