"""The roles that a station hosts, as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from turnout import _arguments
from turnout.distributed.messages import Message, Party
from turnout.distributed.roles.base import Participant, State, listed
from turnout.errors import InvalidValueError, MissingPartyError


def hosted(roles: Iterable[Participant]) -> dict[Party, Participant]:
    """Check that roles belong to different parties of one round."""
    found: dict[Party, Participant] = {}
    for role in _arguments.items("roles", roles, "roles of one round"):
        if not isinstance(role, Participant):
            raise _arguments.mistyped("roles must hold roles", role)
        if role.party in found:
            raise InvalidValueError(f"roles must be of different parties, got {role.party} twice")
        found[role.party] = role
    rounds = {role.round_id for role in found.values()}
    if len(rounds) != 1:
        raise InvalidValueError(
            f"roles must be at least one, and all of one round, got {len(found)} of {len(rounds)} "
            "rounds"
        )
    return found


def unfinished(roles: Mapping[Party, Participant]) -> set[Party]:
    """Return the parties whose roles are not done."""
    return {party for party, role in roles.items() if role.state is not State.DONE}


def stages(roles: Mapping[Party, Participant]) -> list[object]:
    """Return where the roles are that can continue without the missing parties."""
    return [role._stage for role in roles.values() if role._closes_again]


def forget(roles: Iterable[Participant]) -> None:
    """Let unfinished roles forget their contents."""
    for role in roles:
        if role.state is not State.DONE:
            with contextlib.suppress(MissingPartyError):
                role.give_up()


def lost(
    roles: Mapping[Party, Participant], waiting: Iterable[Party], undelivered: Iterable[Message]
) -> MissingPartyError:
    """Name all parties that some role waits for, or that a message could not be delivered to."""
    waiters = [role for party, role in roles.items() if party in waiting]
    missing: dict[Party, None] = {}
    for role in waiters:
        missing.update(dict.fromkeys(role.missing))
    missing.update(dict.fromkeys(message.recipient for message in undelivered))
    names = listed(tuple(role.party for role in waiters or roles.values()))
    return MissingPartyError(
        f"{names}: the round is lost without {listed(tuple(missing))}", missing
    )
