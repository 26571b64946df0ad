"""The ledger and the answers that a node keeps, in files of its owner or in the run's memory.

The answers are a JSON object: ``format``, ``"turnout-answers"``; ``version``, 1; ``answers``, an
object with one entry for each collection, under its name. An entry has the fingerprint of the
``plan``, ``epsilon``, the number of people (``nodes``), and the ``reports`` of those who take part:
whole numbers, or lists of them. It holds the reports that were sent, never an answer itself.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from flwr.app import ConfigRecord, Context

from turnout import Plan
from turnout._documents import document
from turnout._files import atomic_write, read_bytes, turn
from turnout.accounting import PrivacyLedger
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    InvalidValueError,
    PlanMismatchError,
)

#: Keys of the node's configuration that name the files, and of the records in memory.
_ANSWERS, _LEDGER = "turnout-answers", "turnout-ledger"
_FORMAT, _VERSION = "turnout-answers", 1
_T = TypeVar("_T")


class _Kept:
    """A text that a node keeps under a key."""

    def __init__(self, context: Context, key: str) -> None:
        named = context.node_config.get(key)
        self.path = None if named is None else Path(str(named))
        self._state, self._key = context.state, key

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Lock the text against other processes."""
        return contextlib.nullcontext() if self.path is None else turn(self.path)

    def read(self, decoded: Callable[[str | bytes], _T]) -> _T | None:
        """Return the decoded text, or None if nothing was written; an error names the file."""
        if self.path is None:
            record = self._state.config_records.get(self._key)
            return None if record is None else decoded(str(record["json"]))
        if not self.path.exists():
            return None
        try:
            return decoded(read_bytes(self.path))
        except CorruptDataError as error:
            raise type(error)(f"{self.path}: {error}") from error

    def write(self, text: str) -> None:
        """Write the text; a file appears whole or not at all, and only its owner reads it."""
        if self.path is None:
            self._state[self._key] = ConfigRecord({"json": text})
            return
        with atomic_write(self.path, private=True) as temporary:
            temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def node_ledger(context: Context, budget: PrivacyLedger | None) -> Iterator[PrivacyLedger | None]:
    """Lend the node's ledger and save what was spent, before anything is computed.

    When the block ends, its spending has been forced to disk. If the block ends in an exception,
    nothing changes. Processes that use the same file take turns.

    Parameters
    ----------
    context
        The node's context. If its configuration has ``turnout-ledger``, that is the path of the
        ledger's file. Otherwise the ledger lives in ``context.state``, as long as the run.
    budget
        The budget that a new ledger starts from, if the node has no ledger yet; None for no budget.

    Yields
    ------
    PrivacyLedger or None
        The ledger; None if there is neither a ledger nor a budget.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        If the ledger is damaged or of another version.
    InvalidValueError
        If the named file does not exist and there is no budget to start it from.
    OSError
        If the file cannot be read or written.

    Examples
    --------
    >>> from flwr.app import RecordDict
    >>> from turnout.accounting import GaussianMechanism
    >>> context = Context(1, 1, node_config={}, state=RecordDict(), run_config={})
    >>> with node_ledger(context, PrivacyLedger(1.0, 1e-5)) as ledger:
    ...     ledger.spend(GaussianMechanism(10.0))
    >>> with node_ledger(context, None) as ledger:
    ...     len(ledger.entries)
    1
    """
    kept = _Kept(context, _LEDGER)
    with kept.turn():
        known = kept.read(PrivacyLedger._from_json)
        before = None if known is None else known._to_json()
        if known is None and budget is not None:
            known = PrivacyLedger._from_json(budget._to_json())
        if known is None and kept.path is not None:
            raise InvalidValueError(
                f"{_LEDGER} of the node's configuration names {kept.path}, which does not exist, "
                "and there is no budget to start it from: make it with PrivacyLedger(...).write"
            )
        yield known
        if known is not None and known._to_json() != before:
            kept.write(known._to_json())


@dataclass(frozen=True)
class Answer:
    """The reports that a node sent in a collection.

    Attributes
    ----------
    plan
        The fingerprint of the collection's plan.
    epsilon
        The epsilon that it costs each person who answers.
    nodes
        The number of people whose answers were randomized, reported or not.
    reports
        The reports of those who take part, as JSON values; empty if nobody does.
    """

    plan: str
    epsilon: float
    nodes: int
    reports: list[Any]

    @classmethod
    def from_dict(cls, description: Any) -> Answer:
        """Read an entry from the file.

        Raises
        ------
        CorruptDataError
            If the entry is not that of an answer.
        """
        match description:
            case {
                "plan": str(plan),
                "epsilon": float(epsilon),
                "nodes": int(nodes),
                "reports": list(reports),
                **rest,
            } if not rest:
                return cls(plan, epsilon, nodes, reports)
        # Nothing of it is shown: it holds reports.
        raise CorruptDataError("not an answer of a collection")


@contextlib.contextmanager
def node_answers(context: Context) -> Iterator[dict[str, Answer]]:
    """Lend the node's answers by the name of the collection, and save the new ones.

    They are saved when the block ends, so before anything is sent. If the block ends in an
    exception, nothing changes. Processes that use the same file take turns.

    Parameters
    ----------
    context
        The node's context. If its configuration has ``turnout-answers``, that is the path of a
        file, which the first answer creates. Otherwise answers live in ``context.state``, as long
        as the run.

    Yields
    ------
    dict
        The answers, to which the block adds its own.

    Raises
    ------
    CorruptDataError
        If the file is damaged.
    OSError
        If the file cannot be read or written.
    """
    kept = _Kept(context, _ANSWERS)
    with kept.turn():
        answers = kept.read(_decoded) or {}
        before = len(answers)
        yield answers
        if len(answers) > before:
            described = {name: asdict(answer) for name, answer in answers.items()}
            document = {"format": _FORMAT, "version": _VERSION, "answers": described}
            kept.write(json.dumps(document, sort_keys=True))


def with_room_for(answers: Mapping[str, Answer], name: str, plan: Plan, budget: float) -> None:
    """Refuse a collection that exceeds the budget, or that was answered under another plan.

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


def _decoded(text: str | bytes) -> dict[str, Answer]:
    description = document("not answers of turnout", text)
    match description:
        case {"format": "turnout-answers", "version": 1, "answers": dict(answers), **rest} if (
            not rest
        ):
            return {name: Answer.from_dict(answer) for name, answer in answers.items()}
    raise CorruptDataError("not answers of turnout")
