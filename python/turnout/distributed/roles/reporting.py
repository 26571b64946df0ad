"""The reporting server of two-stage sampling, which holds elections."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turnout._types import Integers, Truths
from turnout.distributed import payloads
from turnout.distributed.elected import Elected
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.roles.base import Participant, State, absent
from turnout.distributed.roles.elections import (
    Election,
    Word,
    largest_roster,
    lost_users,
    pack_word,
    unpack_missing,
    unpack_word,
)
from turnout.errors import MalformedMessageError, ProtocolError


class ReportingServer(Participant):
    """The role that collects sets and elects users for each item (S1 in the paper).

    It sees who reports which items, but no shares. Its view alone is locally private with
    :attr:`turnout.distributed.TwoStageSampling.reporting_epsilon`.

    Parameters
    ----------
    mechanism, round_id
        The mechanism, and the identifier of the round: see
        :meth:`turnout.distributed.Round.reporting_server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.TwoStageSampling(4, 10, reported=2, rate=0.5, floor=2)
    >>> len(tn.distributed.Round.start(mechanism).reporting_server().missing)
    10
    """

    _mechanism: Elected
    _role: ClassVar[Role] = Role.REPORTING_SERVER
    _users_report = True
    _closes_again = True

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._sets: dict[int, Truths] = {}
        self._number = 0
        #: The items for which each user is elected.
        self._duties: dict[int, list[int]] = {}
        #: What those who are elected miss, as far as they said so.
        self._rosters: dict[int, Integers] = {}
        #: Whether those who had said nothing were asked.
        self._asked = False

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose set has not arrived; then the elected users that miss something."""
        if self.state is State.COLLECTING:
            return absent(Role.USER, self._mechanism.users, self._sets)
        if self.state is not State.WAITING:
            return ()
        lost = self._lost() or self._duties.keys() - self._rosters.keys()
        return tuple(Party(Role.USER, user) for user in sorted(lost))

    def _lost(self) -> set[int]:
        """Return the lost users; nobody, before anybody has been asked."""
        silent = self._duties.keys() - self._rosters.keys() if self._asked else ()
        return lost_users(silent, self._rosters)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""
        mechanism = self._mechanism
        return {
            MessageKind.SET: payloads.bits_size(mechanism.domain.size),
            MessageKind.ROSTER: largest_roster(mechanism),
        }

    @property
    def _stage(self) -> object:
        return self.state, self._number

    def _needs(self, message: Message) -> bool:
        # A user who is not reached is lost, and the round goes on.
        return message.recipient.role is not Role.USER

    def _of_use(self, message: Message) -> bool:
        number = payloads.Reader(message.payload).number(2**32 - 1)
        if message.kind is MessageKind.ELECTION:
            return number == self._number
        _, word = unpack_word(message.payload)
        if word is Word.ADD_UP:
            return True
        return self.state is State.WAITING and (word is Word.WITHOUT_YOU or number == self._number)

    def _forget(self) -> None:
        self._sets.clear()
        self._duties = {}
        self._rosters.clear()

    def _accept(self, message: Message) -> list[Message]:
        if message.kind is MessageKind.ROSTER:
            return self._take_roster(message)
        mechanism = self._mechanism
        user = self._sender(message, Role.USER, mechanism.users, self._sets, State.COLLECTING)
        found = payloads.unpack_bits(message.payload, mechanism.domain.size, "a set")
        if found.sum() != mechanism.reported:
            raise MalformedMessageError(
                f"the set of {message.sender} must have {mechanism.reported} items, got "
                f"{found.sum()}"
            )
        self._sets[user] = found
        return []

    def close(self) -> list[Message]:
        """Accept no more sets, and elect users for each item among those that sent one.

        If you call it again while the round waits for users, the round continues without them.
        First it asks the elected users which shares they miss. Then it leaves out users whose
        shares are missing or who do not answer, and elects among the others.

        Returns
        -------
        list of Message
            An election for every user that is left, and for the server; or the question.

        Raises
        ------
        ProtocolError
            If the round does not wait for users.
        MissingPartyError
            If more users are missing than ``max_missing_users``; nothing is kept then.
        """
        if self.state is State.WAITING:
            return self._elect_again() if self._asked else self._ask()
        self._check_open()
        self._check_missing(self.missing)
        self.state = State.WAITING
        return self._elect()

    def _elect(self) -> list[Message]:
        mechanism = self._mechanism
        present = np.array(sorted(self._sets), np.int64)
        table = np.array([self._sets[user] for user in present.tolist()])
        reporters = table.sum(axis=0, dtype=np.int64)
        self.costs.additions += int(table.size)
        drawn = secrets.SystemRandom()
        elected = tuple(
            np.array(drawn.sample(present.tolist(), min(size, len(present))), np.int64)
            for size in map(mechanism._committee_size, reporters.tolist())
        )
        election = Election(len(present), reporters, elected, {}, self._number)
        public = election.public_part()
        duties = self._duties = election.duties_of_all()
        self._rosters, self._asked = {}, False
        messages = []
        for user in present.tolist():
            own = ((item, present[table[:, item]]) for item in duties.get(user, ()))
            payload = public + election.duty_part(own)
            messages.append(self._send(MessageKind.ELECTION, Party(Role.USER, user), payload))
        messages.append(self._send(MessageKind.ELECTION, Party(Role.SERVER), public))
        return messages

    def _take_roster(self, message: Message) -> list[Message]:
        user = self._sender(message, Role.USER, self._mechanism.users, (), State.WAITING)
        number, missing = unpack_missing(self._mechanism, message.payload)
        if number != self._number or user not in self._duties:
            raise ProtocolError(
                f"{self.party} is in election {self._number}, and got a roster of "
                f"{message.sender} of election {number}, for which it is not elected now"
            )
        known = self._rosters.get(user)
        if known is not None and not (known.size and not missing.size):
            raise ProtocolError(f"{self.party} already has the message of {message.sender}")
        duties = self._duties[user]
        if not all(
            other != user and other in self._sets and self._sets[other][duties].any()
            for other in missing.tolist()
        ):
            raise MalformedMessageError(
                f"the roster of {message.sender} must be of users who report to it"
            )
        self._rosters[user] = missing
        if len(self._rosters) < len(self._duties):
            return []
        if all(not each.size for each in self._rosters.values()):
            return self._let_add_up()
        return self._elect_again() if self._asked else []

    def _let_add_up(self) -> list[Message]:
        present = sorted(self._sets)
        self._forget()
        self.state = State.DONE
        return [self._say(Word.ADD_UP, user) for user in present]

    def _ask(self) -> list[Message]:
        self._asked = True
        return [
            self._say(Word.ANSWER, user)
            for user in sorted(self._duties.keys() - self._rosters.keys())
        ]

    def _elect_again(self) -> list[Message]:
        """Leave out the lost users, and hold an election among the others."""
        lost = self._lost()
        there = {user: chosen for user, chosen in self._sets.items() if user not in lost}
        self._check_missing(absent(Role.USER, self._mechanism.users, there))
        told = [self._say(Word.WITHOUT_YOU, user) for user in sorted(lost)]
        self._sets = there
        self._number += 1
        return told + self._elect()

    def _say(self, word: Word, user: int) -> Message:
        payload = pack_word(self._number, word)
        return self._send(MessageKind.ROSTER, Party(Role.USER, user), payload)
