"""The first server of two-stage sampling, S1: it gets the sets, and elects users."""

from __future__ import annotations

import argparse
import dataclasses

import party

from turnout.distributed.transport import Address, Station


async def main(given: argparse.Namespace) -> None:
    """Host the role of the reporting server for one round."""
    role = party.read_round(given.round).reporting_server()
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
        party.say("listening", place=party.place(role.party.role, 0, 1, station.address))
        book.update(await control.book())
        control.on("close", station.stop_collecting)
        await station.collect(within=given.collect_within)
        # Users who do not come are left out, and others are elected.
        await station.finish(within=given.finish_within, step_within=given.step_within)
    party.say("done", role=int(role.party.role), costs=dataclasses.asdict(role.costs))


if __name__ == "__main__":
    party.run(main(party.options(__doc__ or "").parse_args()))
