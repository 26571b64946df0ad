"""What messages hold: a plan and a model on the way out, an update on the way back.

To a client
    ``arrays``
        An ``ArrayRecord``, the model.
    ``turnout.round``
        A ``ConfigRecord``: ``plan``, the JSON of
        :meth:`turnout.federated.RandomParticipationSGD.to_dict`; ``round``, from 0; ``structure``,
        the JSON of the model's structure, if it is more than arrays with names.
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
from turnout.federated.trees import Structure, Tree, flatten

ARRAYS = "arrays"
ROUND = "turnout.round"
DRAW = "turnout.draw"
#: Flower's code for a message that a mod does not let through.
_REFUSED = 6
_UPDATE = "turnout.update"
_VALUES = "values"


def refused(message: Message, reason: str) -> Message:
    """Reply that nothing is sent."""
    return Message(Error(_REFUSED, reason), reply_to=message)


def refusal(message: Message, error: Exception) -> Message:
    """Reply why nothing is sent as far as it is public; what may quote data stays in the log."""
    log(ERROR, "turnout: nothing is sent", exc_info=error)
    reason = "nothing is sent: see the node's log"
    if isinstance(error, BudgetExceededError):
        reason = "BudgetExceededError: the node's privacy budget does not allow it"
    elif isinstance(error, (ProtocolError, PlanExpiredError, PlanMismatchError)):
        reason = f"{type(error).__name__}: {error}"
    return refused(message, reason)


def partition(context: Context) -> int:
    """Give the number of a node, which matters in seeded studies only."""
    index = context.node_config.get("partition-id")
    if type(index) is not int:
        raise ProtocolError(
            "a seed needs partition-id in the configuration of every node, so that their draws "
            f"differ, got {_arguments.shown(index)}"
        )
    return index


def taken(replies: Iterable[Message], take: Callable[[int, Message], object]) -> int:
    """Take the reply of each node, leave out what does not fit, and count the others."""
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
    """Put a model into a record.

    Parameters
    ----------
    tree
        Nested lists, tuples and dictionaries of float32 or float64 arrays.

    Returns
    -------
    flwr.app.ArrayRecord
        A dictionary of arrays by its own names; anything else by the paths of its leaves.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is no such tree.

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
    """Take a model out of a record.

    Parameters
    ----------
    arrays
        The record.
    structure
        How its arrays are nested; None if they only have names.

    Returns
    -------
    Tree
        Nested as ``structure`` says, or a dictionary.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the record and the structure do not fit.
    CorruptDataError
        If the record holds something that is no array of numbers.

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
    """Read an array of a record, which whoever sent it has written.

    ``Array.numpy()`` hands the bytes to ``numpy.load``, of which a few can end a process.

    Parameters
    ----------
    array
        What the record holds.

    Returns
    -------
    numpy.ndarray
        Read-only; over the bytes of the record where that is possible.

    Raises
    ------
    CorruptDataError
        If it is no array of numbers.

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
    """Say whether a tree is a dictionary of arrays, which needs no structure beside its record."""
    description = structure.to_dict()
    return "dict" in description and all("dtype" in entry for entry in description["dict"].values())


def round_record(
    plan: RandomParticipationSGD, number: int, structure: Structure | None
) -> ConfigRecord:
    """Make the record that opens a round for a client."""
    record = ConfigRecord({"plan": json.dumps(plan.to_dict(), sort_keys=True), "round": number})
    if structure is not None and not _named(structure):
        record["structure"] = json.dumps(structure.to_dict())
    return record


def round_of(content: RecordDict) -> ConfigRecord:
    """Find the record that opens a round.

    Raises
    ------
    MalformedMessageError
        If there is none, or it has no number.
    """
    record = content.config_records.get(ROUND)
    number = None if record is None else record.get("round")
    if record is None or type(number) is not int or number < 0:
        raise MalformedMessageError(
            f"the message has no record {ROUND!r} with a round: was it sent by "
            "RandomParticipationStrategy?"
        )
    return record


def plan_of(record: ConfigRecord) -> RandomParticipationSGD:
    """Read the plan of a round.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        If it is no plan that this release reads.
    """
    return RandomParticipationSGD.from_dict(_json(record, "plan"))


def model_of(content: RecordDict) -> tuple[Tree, Structure]:
    """Read the model that a round is about.

    Raises
    ------
    MalformedMessageError
        If there is none.
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
    """Give the elements that the application is asked for the gradients of.

    Parameters
    ----------
    message
        The message that the train handler got, in a project with the mod of
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
    """Take per-example gradients out of the reply of a project's train handler.

    Raises
    ------
    MalformedMessageError
        If it is an error, or does not hold one ``ArrayRecord`` with the names of the model.
    CorruptDataError
        If something in it is no array of numbers.
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
    """Answer a message with an update, or with nothing."""
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
    """Read the update out of a reply; None if it holds none.

    Raises
    ------
    MalformedMessageError
        If there is something in it that is no update.
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
