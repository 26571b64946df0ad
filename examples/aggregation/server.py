"""The server that puts the sums together and publishes the estimate: S2 of two-stage sampling."""

from __future__ import annotations

import argparse
import dataclasses

import party

from turnout.distributed.transport import Address, Station


async def main(given: argparse.Namespace) -> None:
    """Host the role of the server for one round."""
    role = party.read_round(given.round).server()
    server_tls, client_tls = party.contexts(given.certificates, party.own_name(role.party))
    control, book = party.Control(), dict[party.Party, Address]()
    station = Station(
        [role],
        book,
        server_tls=server_tls,
        client_tls=client_tls,
        admits=party.speaks_for if given.certificates else None,
    )
    async with station:
        party.say("listening", place=party.place(role.party.role, 0, 1, station.address))
        book.update(await control.book())
        control.on("give up", station.give_up)
        await station.finish(within=given.collect_within + given.finish_within)
    estimate = role.estimate()
    party.say(
        "done",
        role=int(role.party.role),
        costs=dataclasses.asdict(role.costs),
        received=estimate.received,
        sums=role.sums.tolist(),
        estimates=estimate.to_records(given.level, simultaneous="bonferroni"),
    )


if __name__ == "__main__":
    parser = party.options(__doc__ or "")
    parser.add_argument("--level", type=float, default=0.95, help="of all intervals together")
    party.run(main(parser.parse_args()))
