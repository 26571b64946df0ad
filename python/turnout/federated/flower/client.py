"""The client in Flower: a mod for any ClientApp, and a ready ClientApp around one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from logging import ERROR
from typing import Any, TypeAlias

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod
from flwr.common.logger import log

from turnout import _arguments
from turnout._types import Integers
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError, ProtocolError, TurnoutError
from turnout.federated import Client, RandomParticipationSGD, Update
from turnout.federated.client import LABEL, Draw
from turnout.federated.flower import records, standard
from turnout.federated.flower.kept import node_ledger
from turnout.federated.flower.secure import (
    aggregator_reply,
    is_aggregator,
    is_for_aggregators,
    update_reply,
)
from turnout.federated.optimizers import Schedule, checked_rate
from turnout.federated.shares import checked_keys
from turnout.federated.sums import check_trial
from turnout.federated.trees import Structure

Indices: TypeAlias = Integers
#: Gives a node's number of elements, and the gradients of some of them at a model.
LocalData: TypeAlias = Callable[[Context], tuple[int, Callable[[Any, Indices], Any]]]
_Plan: TypeAlias = RandomParticipationSGD | Callable[[Context], RandomParticipationSGD] | None

_STATE = "turnout.training"
_TRIED = "turnout-trial"

#: So many elements fit on every grid. A node with more has to state a bound.
_UNSTATED = 2**21 - 1


def participation_mod(
    size: int | Callable[[Context], int],
    *,
    budget: PrivacyLedger | None = None,
    plan: _Plan = None,
    size_bound: int | None = None,
    trusts_server: bool = False,
    least_seconds: float = 0.0,
    trial: Callable[[Any], Any] | None = None,
    learning_rate: float | Schedule | None = None,
    aggregators: Sequence[str] = (),
) -> Mod:
    """Return a mod that lets a ClientApp take part at random.

    For every train message the mod checks the plan and pays for the round from the node's ledger.
    It then draws whether the node takes part and with which elements. It calls the project's train
    handler only if elements were drawn. :func:`sampled_elements` tells the handler their indices.
    The handler replies with an ``ArrayRecord`` of *per-example* gradients: the names of the model's
    arrays, each with one more axis in front, the examples. The mod alone decides what leaves the
    node: the clipped, truncated and added gradients, in untrusted modes with noise. **All other
    records of the reply are dropped**, metrics included, since nothing pays for them. Messages of
    other types (evaluate, query) pass unchanged: the guarantee does not cover the project's answers
    to them.

    Parameters
    ----------
    size
        The number of elements of the node, or a function of its context that returns it.
    budget
        A new ledger, from which a node without a ledger starts. If the node's configuration has
        ``turnout-ledger``, that names the file of the ledger; its content counts, not ``budget``.
        Otherwise the ledger is kept in ``context.state``, which Flower forgets when the run or the
        SuperNode ends.
    plan
        The only plan that the node accepts, or a function of its context that returns it. If None,
        there must be a ledger. The node then accepts every plan of the server that has exact noise
        and no seed and that the ledger pays for. The ledger pays for one kind of round only, that
        of the first round: a server that chose the next kind by what it has seen could get more
        than the budget. A plan with a seed, with ``noise="float"`` or ``"none"`` protects nobody
        and is accepted only if you pass it here.
    size_bound
        A public upper bound of the number of elements of the node; ``size`` if None and ``size`` is
        a number. Without ``plan``, a plan whose accounting rests on a ``local_size`` is accepted
        only if its ``local_size`` is at least this bound. The true size is not compared with what a
        server asks for: refusals would reveal it. Without ``plan`` and a bound, a node may have
        2^21 - 1 elements, which fit on every grid.
    trusts_server
        Whether to accept the mode ``"trusted_server"`` without ``plan``. The server and the
        SuperLink then see the node's sums without noise.
    least_seconds
        In the mode ``"always_send"``, the least number of seconds from a message to the node's
        reply. If it is longer than gradients take, the time of the reply does not reveal whether
        the node takes part.
    trial
        ``trial(parameters)`` returns the gradients of a few made-up elements at the model, from the
        same code as those of real ones. A node calls it before it pays for its first round. If the
        gradients have a wrong shape or dtype, or none is finite, the node replies with the reason
        and pays nothing. The reply contains nothing of the node's data, so it reveals nothing about
        them.
    learning_rate
        None if the server uses :class:`RandomParticipationStrategy`. For a strategy of Flower's
        own, such as ``FedAvg`` or ``FedAdam``, a number above 0 or a schedule. The node then makes
        a step of this learning rate with its noisy update, and sends the model that results, with
        the constant weight ``num-examples`` = 1. Such strategies send no plan, so pass ``plan``:
        one of a mode with noise of the node's own, without ``adaptive_clipping`` and
        ``secure_sum``. The model is a dictionary of arrays. In the mode ``"participants_only"`` a
        node that does not take part replies with an error that says so.
    aggregators
        The public keys of the aggregators, from :func:`new_aggregator`, if the plan has a
        ``secure_sum``. The node sends each a share of its update that nobody else can read. Without
        keys the node refuses such a plan: a server that named the keys could name its own. It
        refuses such a plan without ``plan`` too: a server could say that fewer clients work for it
        than do. A node whose configuration has ``turnout-aggregator`` adds up shares, and never
        trains.

    Returns
    -------
    Mod
        A mod for ``ClientApp(mods=[...])``. Put it last in the list, so that no other mod sees
        gradients on their way out.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    A refused message (no budget left, another plan, a round that was answered) gets an error reply
    with Flower's code 6 and the reason. If the project's handler fails, the details stay in the
    node's log, since the message of an exception may quote data. In modes that do not trust the
    server the node then sends noise alone, since an error would reveal something about its
    elements. A single gradient that is not finite counts as zero.

    If a handler fails because of one element, the gradients of all others are lost too: that is
    more than the noise hides. It must return some gradient for every element, zero if it has no
    better one.

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
    keys = checked_keys(aggregators) if aggregators else ()
    node = _Node(budget, plan, size_bound, trusts_server, least_seconds, trial, learning_rate, keys)

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
    learning_rate: float | Schedule | None = None,
    aggregators: Sequence[str] = (),
) -> ClientApp:
    """Return a ClientApp that trains with random participation.

    Parameters
    ----------
    local
        A function of the node's context that returns two things: the number of elements of the
        node, and a function ``gradients_of(parameters, elements)``. That function returns the
        gradient of each of these elements: a tree like the parameters with one more axis in front,
        or an array (examples, parameters). It is called only if elements were drawn. The parameters
        are nested like the server's model.
    budget, plan, size_bound, trusts_server, least_seconds, trial, learning_rate, aggregators
        As for :func:`participation_mod`.

    Returns
    -------
    flwr.clientapp.ClientApp
        An app to name in ``pyproject.toml``. You may add handlers for evaluate and query messages.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    Learn the mean of the node's numbers, by gradients of squares:

    >>> import numpy as np
    >>> from turnout.accounting import PrivacyLedger
    >>> def local(context):
    ...     numbers = np.array([1.0, 2.0, 4.0])
    ...     return 3, lambda mean, elements: mean - numbers[elements, None]
    >>> app = client_app(local, budget=PrivacyLedger(epsilon=1.0, delta=1e-5), size_bound=10)
    """
    if not callable(local):
        raise _arguments.mistyped("local must be a function of the node's context", local)
    keys = checked_keys(aggregators) if aggregators else ()
    node = _Node(budget, plan, size_bound, trusts_server, least_seconds, trial, learning_rate, keys)
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
    learning_rate: float | Schedule | None
    aggregators: tuple[str, ...]

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
        if self.learning_rate is not None:
            checked_rate(self.learning_rate)
            if self.plan is None:
                raise InvalidValueError(
                    "plan must be given with learning_rate: Flower's own strategies send no plan"
                )
            if isinstance(self.plan, RandomParticipationSGD):
                standard.check_plan(self.plan)

    def answer(self, message: Message, context: Context, local: LocalData) -> Message:
        """Answer a train message, of an aggregator or of a client."""
        if is_for_aggregators(message):
            return aggregator_reply(message, context, self.aggregators)
        return self._trained(message, context, local)

    def _trained(self, message: Message, context: Context, local: LocalData) -> Message:
        begin = time.monotonic()
        try:
            content = self._opened(message, context)
            model, structure = records.model_of(content)
            opened = records.round_of(content)
            plan = self._accepted(opened, context)
            clip = records.clip_of(opened, plan)
            self._try(context, model, structure)
        except TurnoutError as error:
            return records.refusal(message, error)
        try:
            size, gradients_of = local(context)
            most = self._size_bound
            if most is not None:
                _arguments.integer("size", size, least=0, most=most)
        except Exception:
            return _failure(message, "the local data could not be read")
        try:
            client, draw = self._drawn(int(opened["round"]), context, plan, size, structure)  # type: ignore[arg-type]
        except (TurnoutError, OSError) as error:
            return records.refusal(message, error)
        update: Update | None
        if draw.takes_part:
            try:
                sampled = draw.elements.size > 0
                gradients = gradients_of(model, draw.elements) if sampled else None
                update = client.update(draw, gradients, clip=clip)
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
        if self.learning_rate is not None:
            return standard.standard_reply(message, plan, model, update, self.learning_rate)
        keys = () if plan.secure_sum is None else self.aggregators
        return update_reply(message, context, keys, update)

    @property
    def _size_bound(self) -> int | None:
        """The most elements that the node may have; None if the owner named a plan without it."""
        return _UNSTATED if self.size_bound is None and self.plan is None else self.size_bound

    def _opened(self, message: Message, context: Context) -> RecordDict:
        """Return the content of a message, with what only turnout's own strategy sends."""
        if self.learning_rate is None:
            return message.content
        plan = self.plan(context) if callable(self.plan) else self.plan
        assert plan is not None
        try:
            standard.check_plan(plan)
        except InvalidValueError as error:
            raise ProtocolError(str(error)) from error
        return standard.opened(message.content, plan)

    def _accepted(self, opened: ConfigRecord, context: Context) -> RandomParticipationSGD:
        plan = records.plan_of(opened)
        if is_aggregator(context):
            raise ProtocolError("the node is an aggregator, which adds up shares and never trains")
        if plan.secure_sum is not None and not self.aggregators:
            raise ProtocolError(
                "the plan has a secure_sum, and the node knows no aggregators: pass their public "
                "keys as aggregators"
            )
        own = self.plan(context) if callable(self.plan) else self.plan
        if own is not None:
            if plan != own:
                raise ProtocolError(f"the node accepts the plan {own!r} only, got {plan!r}")
            return plan
        if plan.secure_sum is not None:
            raise ProtocolError(
                "a plan with a secure_sum rests on how many clients work for the server, which the "
                f"server must not choose: name the plan on the node, got {plan!r}"
            )
        if plan.seed is not None or plan.noise != "exact":
            raise ProtocolError(
                "a plan with a seed or without exact noise protects nobody, so a node "
                f"accepts it only from its own configuration, got {plan!r}"
            )
        needed, stated = plan.local_size, self.size_bound
        if needed is not None and (stated is None or needed < stated):
            raise ProtocolError(
                f"the plan rests on local_size = {needed}, and the node "
                + (
                    "has no bound on its number of elements: pass size_bound or plan"
                    if stated is None
                    else f"may have up to size_bound = {stated} elements"
                )
            )
        if plan.grid is not None and needed is None and plan.unit == "element":
            # Not the true number: a server that chooses grids would find it.
            plan.grid.check_examples("size_bound", self._size_bound or 1)
        if plan.mode == "trusted_server" and not self.trusts_server:
            raise ProtocolError(
                "the mode 'trusted_server' sends sums without noise, and the node does "
                "not trust the server: train in another mode, or pass trusts_server=True "
                "on the node"
            )
        return plan

    def _try(self, context: Context, model: Any, structure: Structure) -> None:
        """Compute gradients of made-up elements, once in a run; errors may be reported."""
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
        number: int,
        context: Context,
        plan: RandomParticipationSGD,
        size: int,
        structure: Structure,
    ) -> tuple[Client, Draw]:
        """Pay for the round, then draw; the payment is saved on return."""
        _check_new(context, plan, number)
        budget = self.budget
        if budget is None and self.plan is not None:
            budget = plan.ledger()
        with node_ledger(context, budget) as ledger:
            if ledger is None and self.plan is None:
                raise ProtocolError(
                    "the node has no ledger to pay for the round: pass a budget, or name the "
                    "file of its ledger in the node's configuration"
                )
            if ledger is not None and self.plan is None:
                _check_kind(ledger, plan)
            index = 0 if plan.seed is None else records.partition(context)
            client = Client(plan, size, parameters=structure, index=index, ledger=ledger)
            draw = client.draw(number)
        context.state[_STATE] = ConfigRecord({**_answered(context), plan.fingerprint: number})
        return client, draw


def _check_new(context: Context, plan: RandomParticipationSGD, number: int) -> None:
    """Refuse a round that was drawn before in this run, also if rounds of other plans followed."""
    last = _answered(context).get(plan.fingerprint, -1)
    if number <= last:
        raise ProtocolError(
            f"round must be above {last}, the last that the node answered, got {number}"
        )


def _answered(context: Context) -> dict[str, Any]:
    """Return the last round of each plan that the node has drawn in this run."""
    return dict(context.state.config_records.get(_STATE, ConfigRecord()))


def _check_kind(ledger: PrivacyLedger, plan: RandomParticipationSGD) -> None:
    """Refuse a new kind of round after the first was paid, if the server chooses the kind.

    Composition bounds the total of kinds that do not depend on results. If the server chooses a
    kind by what it has seen, delta can reach almost twice that of the budget, and more with more
    choices.
    """
    for entry in ledger.entries:
        if entry.label == LABEL and entry.mechanism != plan.mechanism:
            raise ProtocolError(
                f"the node's ledger has paid for rounds of {entry.mechanism!r} and pays for no "
                f"other kind that the server chooses, got {plan.mechanism!r}: name the plan on the "
                "node"
            )


def _failure(message: Message, reason: str) -> Message:
    """Reply that something failed; the details stay in the node's log."""
    log(ERROR, "turnout: %s", reason, exc_info=True)
    return records.refused(message, f"{reason}: see the node's log")
