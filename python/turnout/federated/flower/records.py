"""The content of messages: a plan and a model on the way out, an update on the way back.

To a client
    ``arrays``
        An ``ArrayRecord``, the model.
    ``turnout.round``
        A ``ConfigRecord``: ``plan``, the JSON of
        :meth:`turnout.federated.RandomParticipationSGD.to_dict`; ``round``, from 0; ``clip``, the
        clip of the round, if the plan lets it move; ``structure``, the JSON of the model's
        structure, if it is more than arrays with names.
    ``config``
        A ``ConfigRecord`` of the project's own, if there is one.

To the application, from the mod
    ``turnout.draw``
        A ``ConfigRecord``: ``elements``, the indices of the sampled elements.

To the server
    ``turnout.update``
        An ``ArrayRecord`` with one array ``values``: int32 where all numbers fit, else int64, in
        steps of the plan's grid; float64 if the plan has none.
    ``turnout.round``
        A ``ConfigRecord``: ``plan``, the fingerprint; ``round``.

A client that sends nothing replies with no records at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from logging import ERROR, WARNING
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
from flwr.common.constant import SType
from flwr.common.logger import log

from turnout import _arguments
from turnout._arrays import read_array
from turnout._documents import parsed
from turnout._types import Integers
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    MalformedMessageError,
    PlanExpiredError,
    PlanMismatchError,
    ProtocolError,
    TurnoutError,
)
from turnout.federated import RandomParticipationSGD, Update
from turnout.federated.sums import round_clip
from turnout.federated.trees import Structure, Tree, flatten

ARRAYS = "arrays"
ROUND = "turnout.round"
DRAW = "turnout.draw"
#: Flower's code for a message that a mod does not let through.
_REFUSED = 6
_UPDATE = "turnout.update"
_VALUES = "values"


def refused(message: Message, reason: str) -> Message:
    """Reply with an error instead of an update."""
    return Message(Error(_REFUSED, reason), reply_to=message)


def refusal(message: Message, error: Exception) -> Message:
    """Reply with the public reason why nothing is sent; what may quote data stays in the log."""
    log(ERROR, "turnout: nothing is sent", exc_info=error)
    reason = "nothing is sent: see the node's log"
    if isinstance(error, BudgetExceededError):
        reason = "BudgetExceededError: the node's privacy budget does not allow it"
    elif isinstance(error, (ProtocolError, PlanExpiredError, PlanMismatchError)):
        reason = f"{type(error).__name__}: {error}"
    return refused(message, reason)


def partition(context: Context) -> int:
    """Return the number of a node, which matters in seeded studies only."""
    index = context.node_config.get("partition-id")
    if type(index) is not int:
        raise ProtocolError(
            "a seed needs partition-id in the configuration of every node, so that their draws "
            f"differ, got {_arguments.shown(index)}"
        )
    return index


def taken(replies: Iterable[Message], take: Callable[[int, Message], object]) -> int:
    """Take the reply of each node, leave out replies that do not fit, and count the others."""
    fitting = 0
    for reply in replies:
        node = reply.metadata.src_node_id
        try:
            if reply.has_error():
                log(WARNING, "turnout: node %s failed: %s", node, reply.error.reason)
            else:
                take(node, reply)
                fitting += 1
        except TurnoutError as error:
            log(WARNING, "turnout: the reply of node %s is left out: %s", node, error)
    return fitting


def pack(tree: Tree) -> ArrayRecord:
    """Return a record that holds a model.

    Parameters
    ----------
    tree
        Nested lists, tuples and dictionaries of float32 or float64 arrays.

    Returns
    -------
    flwr.app.ArrayRecord
        For a dictionary of arrays, the arrays under its own names; otherwise under the paths of the
        leaves.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``tree`` is not such a tree.

    Examples
    --------
    >>> import numpy as np
    >>> list(pack({"weights": np.zeros(2), "bias": np.zeros(1)}))
    ['bias', 'weights']
    >>> list(pack([np.zeros(2), (np.zeros(1),)]))
    ['[0]', '[1][0]']
    """
    leaves, structure = flatten(tree)
    keys = structure.to_dict()["dict"] if _named(structure) else structure.paths
    pairs = zip(keys, leaves, strict=True)
    return ArrayRecord({key or "parameters": Array(np.asarray(leaf)) for key, leaf in pairs})


def unpack(arrays: ArrayRecord, structure: Structure | None = None) -> Tree:
    """Return the model that a record holds.

    Parameters
    ----------
    arrays
        The record.
    structure
        The nesting of its arrays; None if they only have names.

    Returns
    -------
    Tree
        The model, nested according to ``structure``, or a dictionary.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the record does not fit the structure.
    CorruptDataError
        If the record holds something that is not an array of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> unpack(pack({"bias": np.zeros(1)}))
    {'bias': array([0.])}
    """
    # Copied: what is over the bytes of the message cannot be written to.
    leaves = [numbers_of(array).copy() for array in arrays.values()]
    if structure is not None:
        return structure.unflatten(leaves)
    return dict(zip(arrays, leaves, strict=True))


def numbers_of(array: Array) -> npt.NDArray[Any]:
    """Read an array of a record, which the sender wrote and nobody has checked.

    ``Array.numpy()`` passes the bytes to ``numpy.load``, and a few bytes can end a process there.

    Parameters
    ----------
    array
        The array from the record.

    Returns
    -------
    numpy.ndarray
        A read-only array, over the bytes of the record where possible.

    Raises
    ------
    CorruptDataError
        If it is not an array of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_of(Array(np.arange(3.0)))
    array([0., 1., 2.])
    """
    if array.stype != SType.NUMPY:
        raise CorruptDataError(
            f"an array must be stored as {SType.NUMPY!r}, got {_arguments.shown(array.stype)}"
        )
    return read_array(array.data)


def _named(structure: Structure) -> bool:
    """Return whether a tree is a dictionary of arrays, whose record needs no structure."""
    description = structure.to_dict()
    return "dict" in description and all("dtype" in entry for entry in description["dict"].values())


def round_record(
    plan: RandomParticipationSGD, number: int, structure: Structure | None, clip: float
) -> ConfigRecord:
    """Return the record that opens a round for a client."""
    record = ConfigRecord({"plan": json.dumps(plan.to_dict(), sort_keys=True), "round": number})
    if plan.adaptive_clipping is not None:
        record["clip"] = clip
    if structure is not None and not _named(structure):
        record["structure"] = json.dumps(structure.to_dict())
    return record


def round_of(content: RecordDict) -> ConfigRecord:
    """Return the record that opens a round.

    Raises
    ------
    MalformedMessageError
        If there is no such record, or it has no number.
    """
    record = content.config_records.get(ROUND)
    number = None if record is None else record.get("round")
    if record is None or type(number) is not int or number < 0:
        raise MalformedMessageError(
            f"the message has no record {ROUND!r} with a round: the server must use "
            "RandomParticipationStrategy. For a strategy of Flower's own, pass learning_rate and "
            "plan on the node"
        )
    return record


def plan_of(record: ConfigRecord) -> RandomParticipationSGD:
    """Read the plan of a round.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        If it is not a plan that this release reads.
    """
    return RandomParticipationSGD.from_dict(_json(record, "plan"))


def clip_of(record: ConfigRecord, plan: RandomParticipationSGD) -> float | None:
    """Read the clip of a round, if the plan lets it move.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the plan cannot lead to this clip.
    """
    given: Any = record.get("clip")
    round_clip(plan, given)
    return None if given is None else float(given)


def model_of(content: RecordDict) -> tuple[Tree, Structure]:
    """Read the model of a round.

    Raises
    ------
    MalformedMessageError
        If the message has no model.
    """
    arrays = content.array_records.get(ARRAYS)
    if arrays is None:
        raise MalformedMessageError(f"the message has no model: no ArrayRecord {ARRAYS!r}")
    record = round_of(content)
    try:
        nested = Structure.from_dict(_json(record, "structure")) if "structure" in record else None
        tree = unpack(arrays, nested)
        return tree, flatten(tree)[1]
    except TurnoutError as error:
        raise MalformedMessageError(f"the message has no model: {error}") from error


def _json(record: ConfigRecord, key: str) -> Any:
    text = record.get(key)
    try:
        return parsed(text if isinstance(text, str) else "")
    except ValueError as error:
        raise MalformedMessageError(
            f"the record {ROUND!r} has no JSON under {key!r}: {_arguments.shown(text)}"
        ) from error


def sampled_elements(message: Message) -> Integers:
    """Return the elements whose gradients the application has to compute.

    Parameters
    ----------
    message
        The message of the train handler, in a project with the mod of
        :func:`turnout.federated.flower.participation_mod`.

    Returns
    -------
    numpy.ndarray
        Indices of the node's elements, ascending, at least one.

    Raises
    ------
    MalformedMessageError
        If the message did not pass through the mod.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from flwr.app import ConfigRecord, RecordDict
    >>> content = RecordDict({"turnout.draw": ConfigRecord({"elements": [2, 5]})})
    >>> message = SimpleNamespace(content=content)  # in place of Flower's
    >>> sampled_elements(message)
    array([2, 5])
    """
    record = message.content.config_records.get(DRAW)
    if record is None:
        raise MalformedMessageError(
            f"the message has no record {DRAW!r}: give the ClientApp the mod of participation_mod"
        )
    return np.array(record["elements"], np.int64)


def gradients_of(reply: Message, model: Tree) -> Tree:
    """Return the per-example gradients in the reply of a project's train handler.

    Raises
    ------
    MalformedMessageError
        If the reply is an error, or does not hold one ``ArrayRecord`` with the names of the model.
    CorruptDataError
        If something in the reply is not an array of numbers.
    """
    if reply.has_error():
        raise MalformedMessageError(f"the train handler replied with {reply.error!r}")
    found = list(reply.content.array_records.values())
    if len(found) != 1:
        raise MalformedMessageError(
            f"the reply of the train handler must hold one ArrayRecord, got {len(found)}"
        )
    names = list(pack(model))
    if sorted(found[0]) != sorted(names):
        raise MalformedMessageError(
            "the reply of the train handler must hold gradients under the names of the model, "
            f"{_arguments.listed(names)}, got {_arguments.listed(list(found[0]))}"
        )
    leaves = [numbers_of(found[0][name]) for name in names]
    return flatten(model)[1].unflatten(leaves)


def reply_of(message: Message, update: Update | None) -> Message:
    """Reply to a message with an update, or with an empty content."""
    if update is None:
        return Message(RecordDict(), reply_to=message)
    values = update.values
    if values.dtype.kind == "i":
        limits = np.iinfo(np.int32)
        if values.size and limits.min <= values.min() and values.max() <= limits.max:
            values = values.astype(np.int32)
    content = RecordDict(
        {
            _UPDATE: ArrayRecord({_VALUES: Array(values)}),
            ROUND: ConfigRecord({"plan": update.plan, "round": update.round}),
        }
    )
    return Message(content, reply_to=message)


def update_of(message: Message) -> Update | None:
    """Return the update in a reply; None if the reply is empty.

    Raises
    ------
    MalformedMessageError
        If the reply holds something else than an update.
    """
    content = message.content
    if not content:
        return None
    record = round_of(content)
    arrays = content.array_records.get(_UPDATE)
    try:
        if arrays is None or list(arrays) != [_VALUES]:
            raise MalformedMessageError(f"the reply has no record {_UPDATE!r} with its values")
        values = numbers_of(arrays[_VALUES])
        if values.dtype == np.int32:
            values = values.astype(np.int64)
        return Update(record["round"], values, record.get("plan"))  # type: ignore[arg-type]
    except Exception as error:
        # Whatever a node's bytes lead to is wrong with that node's reply alone.
        raise MalformedMessageError(f"not an update: {error}") from error
