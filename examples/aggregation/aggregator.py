"""One aggregator: collects a share of every user, and sends the sum to the server."""

from __future__ import annotations

import argparse
import dataclasses

import party

from turnout.distributed.transport import Address, Station


async def main(given: argparse.Namespace) -> None:
    """Host the role of an aggregator for one round."""
    role = party.read_round(given.round).aggregator(given.index)
    server_tls, client_tls = party.contexts(given.certificates, party.own_name(role.party))
    control, book = party.Control(), dict[party.Party, Address]()
    station = Station(
        [role],
        book,
        server_tls=server_tls,
        client_tls=client_tls,
        admits=party.speaks_for if given.certificates else None,
        connect_within=given.connect_within,
        answer_within=given.answer_within,
    )
    async with station:
        place = party.place(role.party.role, given.index, 1, station.address)
        party.say("listening", place=place)
        book.update(await control.book())
        control.on("close", station.stop_collecting)
        await station.collect(within=given.collect_within)
        await station.finish(within=given.finish_within)
    party.say("done", role=int(role.party.role), costs=dataclasses.asdict(role.costs))


if __name__ == "__main__":
    parser = party.options(__doc__ or "")
    parser.add_argument("--index", type=int, required=True, help="which aggregator, from 0")
    party.run(main(parser.parse_args()))
