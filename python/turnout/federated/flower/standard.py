"""Rounds of Flower's own strategies: messages without a plan, and replies that they average.

Such a message has a model, an ``ArrayRecord`` under ``arrays``, and the number of the round, from
1, under ``server-round`` in a ``ConfigRecord``. The reply has

``arrays``
    An ``ArrayRecord``, the model after the node's own step: in the order, shapes and dtypes of the
    message.
``metrics``
    A ``MetricRecord``: ``num-examples``, always 1, so that all nodes weigh the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from turnout import _arguments
from turnout.errors import InvalidValueError, MalformedMessageError, ProtocolError
from turnout.federated import RandomParticipationSGD, Update
from turnout.federated.flower import records
from turnout.federated.optimizers import Schedule, rate_of
from turnout.federated.trees import Tree, flatten, vector

_METRICS, _WEIGHT, _NUMBER = "metrics", "num-examples", "server-round"


def check_plan(plan: RandomParticipationSGD) -> None:
    """Refuse a plan that needs turnout's own strategy on the server.

    Raises
    ------
    InvalidValueError
        If the server would have to add the noise, to move the clip, or not to see updates.
    """
    if plan.mode == "trusted_server":
        raise InvalidValueError(
            "plan must have the mode 'always_send' or 'participants_only' with learning_rate: in "
            "the mode 'trusted_server' a node sends its sum without noise, and no strategy of "
            "Flower's own adds the noise that the plan accounts for. Use another mode, or "
            "RandomParticipationStrategy on the server without learning_rate"
        )
    if plan.adaptive_clipping is not None:
        raise InvalidValueError(
            "plan must not have adaptive_clipping with learning_rate: only "
            "RandomParticipationStrategy moves the clip"
        )
    if plan.secure_sum is not None:
        raise InvalidValueError(
            "plan must not have a secure_sum with learning_rate: strategies of Flower's own see "
            "single updates, and each would have a share of the noise only"
        )


def opened(content: RecordDict, plan: RandomParticipationSGD) -> RecordDict:
    """Return the content of a message of Flower's own strategies, with the record of a round.

    Raises
    ------
    MalformedMessageError
        If the message has no number of a round, or comes from turnout's own strategy.
    """
    configurations = content.config_records
    if records.ROUND in configurations:
        raise MalformedMessageError(
            "the message is of RandomParticipationStrategy, which makes the steps itself: leave "
            "out learning_rate on the node"
        )
    numbers = [record[_NUMBER] for record in configurations.values() if _NUMBER in record]
    number = numbers[0] if len(numbers) == 1 else None
    if type(number) is not int or number < 1:
        raise MalformedMessageError(
            f"the message must have one record with {_NUMBER!r}, a whole number of at least 1, "
            f"got {_arguments.shown(numbers)}"
        )
    # A new one: mods around this one keep the message as it came.
    record = records.round_record(plan, number - 1, None, plan.clip)
    return RecordDict({**content, records.ROUND: record})


def standard_reply(
    message: Message,
    plan: RandomParticipationSGD,
    model: Tree,
    update: Update | None,
    learning_rate: float | Schedule,
) -> Message:
    """Reply with the model after a step of the node, which uses nothing but its noisy update.

    The mean of such replies is the model after turnout's own step with the same learning rate: of
    all nodes in the mode ``"always_send"``, and of those that take part in
    ``"participants_only"``, apart from their number, which varies.
    """
    if update is None:
        return records.refused(message, "the node does not take part in this round")
    # A mean over those that take part has no need of the rate at which they do.
    share = plan.client_rate if plan.mode == "participants_only" else 1.0
    step = 1.0 if plan.grid is None else plan.grid.step
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = update.values.astype(np.float64) * (step * plan._scale(1) * share)
        moved = vector(model) - rate_of(learning_rate, update.round) * gradient
    tree = flatten(model)[1].finite(moved)
    if tree is None:
        error = ProtocolError(
            "the step leads to a model that is not finite: is the learning rate too large?"
        )
        return records.refusal(message, error)
    packed = records.pack(tree)
    # Mods of Flower compare the names in their order.
    arrays = ArrayRecord({name: packed[name] for name in message.content[records.ARRAYS]})
    weight: dict[str, Any] = {_WEIGHT: 1}
    content = RecordDict({records.ARRAYS: arrays, _METRICS: MetricRecord(weight)})
    return Message(content, reply_to=message)
