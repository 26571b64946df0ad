"""The devices of many users, in one process so that thousands fit on one machine.

Each has a role of its own and knows only its own answer. In two-stage sampling the devices also
listen: those that are elected add up what others send them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import party

from turnout.distributed import Costs, Message, Role, TwoStageSampling, User
from turnout.distributed.transport import Address, Courier, Station, Undelivered


async def main(given: argparse.Namespace) -> None:
    """Let the devices report."""
    round_ = party.read_round(given.round)
    last = given.first + given.count
    answers = json.loads(given.answers.read_text(encoding="utf-8"))[given.first : last]
    users = [round_.user(index) for index in range(given.first, last)]
    name = f"users {given.first} {last}"
    server_tls, client_tls = party.contexts(given.certificates, name)
    control, book = party.Control(), dict[party.Party, Address]()
    if isinstance(round_.mechanism, TwoStageSampling):
        station = Station(
            users,
            book,
            server_tls=server_tls,
            client_tls=client_tls,
            admits=party.speaks_for if given.certificates else None,
            connect_within=given.connect_within,
            answer_within=given.answer_within,
        )
        async with station:
            place = party.place(Role.USER, given.first, given.count, station.address)
            party.say("listening", place=place)
            book.update(await control.book())
            undelivered = await station.send(reports(users, answers))
            party.say("reported", undelivered=[describe(each) for each in undelivered])
            await station.finish(within=given.collect_within + given.finish_within)
    else:
        book.update(await control.book())
        courier = Courier(
            book,
            tls=client_tls,
            connect_within=given.connect_within,
            answer_within=given.answer_within,
        )
        async with courier:
            undelivered = await courier.send_all(reports(users, answers))
    costs = sum((user.costs for user in users), Costs())
    party.say(
        "done",
        role=int(Role.USER),
        costs=dataclasses.asdict(costs),
        undelivered=[describe(each) for each in undelivered],
    )


def reports(users: Sequence[User], answers: Sequence[Any]) -> Iterator[Message]:
    """Make the messages of one user after the other."""
    for user, answer in zip(users, answers, strict=True):
        yield from user.report(answer)


def describe(each: Undelivered) -> dict[str, str]:
    """Say what did not arrive, and why."""
    return {
        "sender": str(each.message.sender),
        "recipient": str(each.message.recipient),
        "error": type(each.error).__name__,
        "text": str(each.error),
    }


if __name__ == "__main__":
    parser = party.options(__doc__ or "")
    parser.add_argument("--answers", type=party.Path, required=True, help="JSON list of answers")
    parser.add_argument("--first", type=int, required=True, help="index of the first user")
    parser.add_argument("--count", type=int, required=True, help="number of users")
    party.run(main(parser.parse_args()))
