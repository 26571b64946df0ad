"""Protocols of several rounds: their state between rounds, and its document.

A round is a plan of an ordinary kind. Plan files, messages, report files, jobs, tallies and
commands work as for any other plan. The state between rounds is a separate document with the
parameters and the tallies of the closed rounds. Reading it closes the rounds again, so it holds
nothing that could contradict the tallies.

The document is canonical JSON: ``format`` (``"turnout-rounds"``), ``version`` (1), ``protocol`` (an
object with its ``name`` and its parameters), ``tallies`` (a list of tallies in their bytes, in
base64), and ``sha256``, the SHA-256 in hexadecimal of the same text without that key.
"""

from __future__ import annotations

import base64
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final, Generic, TypeVar

from turnout import _arguments
from turnout._documents import SealedDocument
from turnout._files import atomic_write, read_bytes
from turnout._types import Integers, Self
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally, read_tally
from turnout.domain import Domain
from turnout.errors import CorruptDataError, ProtocolError, TurnoutError, UnsupportedVersionError
from turnout.frequency.choice import named_oracle
from turnout.frequency.draws import weighted_choices
from turnout.participation import Participation, taking_part_in

_DOCUMENT: Final = SealedDocument("state of rounds", "turnout-rounds", 1)

#: The protocols that are imported, by the word for them in documents.
_PROTOCOLS: Final[dict[str, type[Rounds[Any, Any]]]] = {}

#: The randomizers of the rounds, and what is found.
K = TypeVar("K", bound=Kind[Any])
R = TypeVar("R")


class RoundsProtocol:
    """Base class of protocols of several rounds: a dataclass of their parameters."""

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments of the constructor as JSON values.

        Raises
        ------
        InvalidTypeError
            If the randomizer is not a named oracle of turnout, or a label of the domain cannot be
            written to a file.
        """
        given: Any = self
        found = {each.name: getattr(self, each.name) for each in fields(given)}
        if "domain" in found:
            found["domain"] = found["domain"].to_dict()
        return {**found, "oracle": named_oracle("oracle", found["oracle"])}

    @classmethod
    def _from_dict(cls, parameters: dict[str, Any]) -> Self:
        """Rebuild a protocol from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError, InvalidTypeError, InvalidValueError, TypeError
            If they are not parameters of this protocol.
        """
        given = dict(parameters)
        if "domain" in given:
            given["domain"] = Domain.from_dict(given["domain"])
        return cls(**given)


class Rounds(ABC, Generic[K, R]):
    """The server's state of a protocol of rounds: it closes each round with its tally.

    A subclass defines the rounds; see :class:`turnout.frequency.heavy_hitters.Search` and
    :class:`turnout.frequency.adaptive.TwoRounds`.
    """

    #: The word for the protocol in documents.
    name: ClassVar[str]
    #: The class of its parameters.
    _protocol_type: ClassVar[type[RoundsProtocol]]

    def __init__(self, protocol: Any, first: K) -> None:
        #: What is asked, and how.
        self.protocol = protocol
        self._current: K | None = first
        self._closed: tuple[Any, ...] = ()
        self._result: R | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Register the protocol for documents."""
        super().__init_subclass__(**arguments)
        _PROTOCOLS[cls.name] = cls

    @abstractmethod
    def _following(self, tally: Any) -> K | None:
        """Process the tally of the open round, and return the next round, or None at the end.

        If it refuses the tally, it must not change anything.
        """

    @property
    def current(self) -> K:
        """The randomizer of the open round.

        Raises
        ------
        ProtocolError
            If the rounds are over.
        """
        if self._current is None:
            raise ProtocolError("the rounds are over: see result (turnout rounds show)")
        return self._current

    @property
    def finished(self) -> bool:
        """Whether the last round is closed."""
        return self._current is None

    @property
    def result(self) -> R:
        """The result of the rounds.

        Raises
        ------
        ProtocolError
            If a round is open.
        """
        if self._result is None:
            raise ProtocolError(f"round {self.number} must be closed with its tally first")
        return self._result

    def __iter__(self) -> Iterator[K]:
        """Iterate over the rounds; close each before you ask for the next.

        Raises
        ------
        ProtocolError
            If a round was not closed.
        """
        given: K | None = None
        while self._current is not None:
            if self._current is given:
                raise ProtocolError(f"round {self.number} must be closed with its tally first")
            given = self._current
            yield given

    @property
    @abstractmethod
    def _shares(self) -> Sequence[int]:
        """The relative numbers of nodes that are asked in each round."""

    def assign(self, nodes: int, *, seed: int | None = None) -> Integers:
        """Draw the round of each node, as every client does for itself.

        Parameters
        ----------
        nodes
            The number of nodes.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        numpy.ndarray
            int64: the number of the round of each node.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        count = _arguments.integer("nodes", nodes, least=0)
        return weighted_choices(self._shares, count, _arguments.seed(seed))

    @property
    def number(self) -> int:
        """The number of closed rounds, which is the number of the open one, counted from 0."""
        return len(self._closed)

    @property
    def participation(self) -> Participation:
        """The default participation of the open round: that of the last closed round."""
        if self._closed:
            before: Participation = self._closed[-1].participation
            return before
        return taking_part_in(None)

    def plan(self, participation: Participation | float | None = None) -> Plan:
        """Return the plan of the open round, with its number as the serial.

        Parameters
        ----------
        participation
            Who of the nodes that are asked takes part; :attr:`participation` by default.

        Returns
        -------
        Plan
            The plan, which is all that a node needs.

        Raises
        ------
        ProtocolError
            If the rounds are over.
        """
        taking_part = self.participation if participation is None else participation
        return Plan(self.current, taking_part_in(taking_part), serial=self.number)

    def close(self, tally: Any) -> None:
        """Close the open round, and open the next one.

        Parameters
        ----------
        tally
            The tally of all nodes that were asked, merged from all parts.

        Raises
        ------
        ProtocolError
            If the rounds are over.
        PlanMismatchError
            If the tally is of another round; the state is unchanged.
        EstimatorError
            If the tally allows no estimate; the state is unchanged.
        InvalidTypeError
            If ``tally`` is not a tally.
        """
        current = self.current
        _arguments.instance("tally", tally, BaseTally, "a Tally")
        Plan(current, tally.participation)._check_same(tally.plan, "tally")
        self._current = self._following(tally)
        self._closed += (tally,)

    def to_json(self) -> str:
        """Write the state between rounds as canonical JSON.

        Returns
        -------
        str
            The text, which is the same for equal parameters and tallies.

        Raises
        ------
        InvalidTypeError
            If a parameter cannot be written to a file.
        """
        tallies = [base64.b64encode(tally.to_bytes()).decode() for tally in self._closed]
        return _DOCUMENT.text(
            {
                "format": _DOCUMENT.format,
                "version": _DOCUMENT.version,
                "protocol": {"name": self.name, **self.protocol.to_dict()},
                "tallies": tallies,
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild the state from :meth:`to_json` by closing the rounds again.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read its version.
        CorruptDataError
            If it is not such a document or was altered, or a tally is not of its round.
        InvalidTypeError
            If ``text`` is not text.
        """
        found: Self = rounds_from_json(text)
        if not isinstance(found, cls):
            raise CorruptDataError(f"not the state of {cls.name}, but of {found.name}")
        return found

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a file; an existing file is replaced, whole or not at all.

        Raises
        ------
        InvalidTypeError
            If a parameter cannot be written to a file.
        OSError
            If the file cannot be written.
        """
        text = self.to_json()
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="ascii", newline="\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Rebuild the state from a file that :meth:`write` wrote.

        Raises
        ------
        UnsupportedVersionError, CorruptDataError
            As :meth:`from_json`; the message names the file.
        OSError
            If the file cannot be read.
        """
        try:
            return cls.from_json(read_bytes(path))
        except (UnsupportedVersionError, CorruptDataError) as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from error

    def __repr__(self) -> str:
        """Show the open round, or the result."""
        return f"{type(self).__name__}({self._result if self.finished else self._current!r})"


def rounds_from_json(text: object) -> Any:
    """Rebuild the rounds of any imported protocol; see :meth:`Rounds.from_json`.

    Raises
    ------
    UnsupportedVersionError, CorruptDataError, InvalidTypeError
        As :meth:`Rounds.from_json`.

    Examples
    --------
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> search = HeavyHitters(4.0, bits=16).rounds()
    >>> rounds_from_json(search.to_json()).current == search.current
    True
    """
    match _DOCUMENT.read(text):
        case {
            "format": _DOCUMENT.format,
            "version": int(),
            "protocol": {"name": str(name), **parameters},
            "tallies": list(tallies),
            **rest,
        } if not rest and name in _PROTOCOLS:
            try:
                kind: Any = _PROTOCOLS[name]
                found = kind(kind._protocol_type._from_dict(parameters))
            except (TurnoutError, TypeError) as error:
                raise CorruptDataError(f"not a {_DOCUMENT.word}: {error}") from error
            for number, tally in enumerate(tallies):
                try:
                    found.close(read_tally(base64.b64decode(tally, validate=True)))
                except (TurnoutError, TypeError, ValueError) as error:
                    raise CorruptDataError(f"the tally of round {number}: {error}") from error
            return found
        case other:
            raise CorruptDataError(f"not a {_DOCUMENT.word}: {_arguments.shown(other)}")
