"""What a node has answered in collections: in a file of its owner, or in the run's own memory.

A JSON object: ``format``, ``"turnout-answers"``; ``version``, 1; ``answers``, an object with one
entry for each collection, under its name. An entry has the fingerprint of the ``plan``,
``epsilon``, the number of people (``nodes``), and their ``reports`` in base64: little-endian, in C
order, of this ``dtype`` and ``shape``. It holds what was sent, never an answer itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context

from turnout import Plan, _arguments
from turnout._arrays import array_of
from turnout._atomic import atomic_write
from turnout._documents import parsed
from turnout._files import read_bytes
from turnout._turns import turn
from turnout._types import Array
from turnout.errors import BudgetExceededError, CorruptDataError, PlanMismatchError

#: The key of the node's configuration that names the file of answers, and of the record in memory.
ANSWERS_KEY = "turnout-answers"
_FORMAT, _VERSION = "turnout-answers", 1


@dataclass(frozen=True, eq=False)
class Answer:
    """What a node sent in a collection.

    Attributes
    ----------
    plan
        The fingerprint of the collection's plan.
    epsilon
        What it costs each person who answers.
    nodes
        How many people's answers were randomized, reported or not.
    reports
        The reports of those who take part; none if nobody does.
    """

    plan: str
    epsilon: float
    nodes: int
    reports: Array

    def to_dict(self) -> dict[str, Any]:
        """Describe it in terms of JSON."""
        return {
            "plan": self.plan,
            "epsilon": self.epsilon,
            "nodes": self.nodes,
            "dtype": self.reports.dtype.newbyteorder("<").str,
            "shape": list(self.reports.shape),
            "reports": base64.b64encode(
                self.reports.astype(self.reports.dtype.newbyteorder("<")).tobytes()
            ).decode("ascii"),
        }

    @classmethod
    def from_dict(cls, description: Any) -> Answer:
        """Rebuild it from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it is no answer.
        """
        match description:
            case {
                "plan": str(plan),
                "epsilon": float(epsilon),
                "nodes": int(nodes),
                "dtype": str(dtype),
                "shape": list(shape),
                "reports": str(text),
                **rest,
            } if not rest:
                try:
                    reports = array_of(base64.b64decode(text, validate=True), dtype, shape)
                except ValueError as error:
                    raise CorruptDataError(f"no answers of turnout: {error}") from error
                return cls(plan, epsilon, nodes, reports)
        raise CorruptDataError(f"no answer of a collection: {_arguments.shown(description)}")


@contextlib.contextmanager
def taking_turns(context: Context) -> Iterator[None]:
    """Keep other processes from the node's answers."""
    path = _path(context)
    if path is None:
        yield
        return
    with turn(path):
        yield


def load_answers(context: Context) -> dict[str, Answer]:
    """Read what the node has answered, by the name of the collection.

    Parameters
    ----------
    context
        The node's context. If its configuration has ``turnout-answers``, that is the path of a
        file, made with the first answer. Otherwise answers live in ``context.state``: as long as
        the run.

    Raises
    ------
    CorruptDataError
        If the file is damaged.
    OSError
        If it cannot be read.
    """
    path = _path(context)
    if path is None:
        record = context.state.config_records.get(ANSWERS_KEY)
        return {} if record is None else _decoded(str(record["json"]))
    if not path.exists():
        return {}
    try:
        return _decoded(read_bytes(path).decode("utf-8"))
    except ValueError as error:
        raise CorruptDataError(f"{path}: {error}") from error


def save_answers(context: Context, answers: Mapping[str, Answer]) -> None:
    """Write down what the node has answered, before it is sent.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    text = json.dumps(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "answers": {name: answer.to_dict() for name, answer in answers.items()},
        },
        sort_keys=True,
    )
    path = _path(context)
    if path is None:
        context.state[ANSWERS_KEY] = ConfigRecord({"json": text})
        return
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def with_room_for(answers: Mapping[str, Answer], name: str, plan: Plan, budget: float) -> None:
    """Refuse a collection that the budget does not allow, or that was answered in another plan.

    Raises
    ------
    PlanMismatchError
        If a collection of this name was answered under another plan.
    BudgetExceededError
        If the epsilons of all collections together would exceed the budget.
    """
    known = answers.get(name)
    if known is not None:
        if known.plan != plan.fingerprint:
            raise PlanMismatchError(f"the collection {name!r} was answered under another plan")
        return
    spent = sum((Fraction(answer.epsilon) for answer in answers.values()), Fraction(0))
    if spent + Fraction(plan.oracle.epsilon) > Fraction(budget):
        raise BudgetExceededError(
            f"an answer at epsilon = {plan.oracle.epsilon} would exceed the budget of {budget}, "
            f"of which {float(spent):.3g} is spent"
        )


def _path(context: Context) -> Path | None:
    named = context.node_config.get(ANSWERS_KEY)
    return None if named is None else Path(str(named))


def _decoded(text: str) -> dict[str, Answer]:
    try:
        description = parsed(text)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"no answers of turnout: {error}") from error
    match description:
        case {"format": "turnout-answers", "version": 1, "answers": dict(answers), **rest} if (
            not rest
        ):
            return {name: Answer.from_dict(answer) for name, answer in answers.items()}
    raise CorruptDataError(f"no answers of turnout: {_arguments.shown(description)}")
