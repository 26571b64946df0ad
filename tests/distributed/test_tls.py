"""Stations and couriers that know each other by certificates."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnout.distributed import Party, Role
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport import Courier
from turnout.errors import MissingPartyError, ProtocolError


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of one authority for some names, and one of another authority."""
    trustme = pytest.importorskip("trustme")
    folder = tmp_path_factory.mktemp("certificates")
    for authority, names in {"ours": ("station", "users"), "theirs": ("stranger",)}.items():
        made = trustme.CA()
        made.cert_pem.write_to_path(str(folder / f"{authority}.pem"))
        for name in names:
            issued = made.issue_cert("127.0.0.1", common_name=name)
            issued.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))
    return folder


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ours.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "station.pem")
    return context


def client_context(folder: Path, name: str | None, authority: str = "ours") -> ssl.SSLContext:
    context = ssl.create_default_context(
        ssl.Purpose.SERVER_AUTH, cafile=folder / f"{authority}.pem"
    )
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem")
    return context


def common_name(certificate: dict[str, Any]) -> str:
    return str(dict(pair for group in certificate["subject"] for pair in group)["commonName"])


def test_a_round_over_tls_with_certificates_on_both_sides(
    sockets: ModuleType, certificates: Path
) -> None:
    round_ = sockets.silent(20)

    def admits(sender: Party, certificate: dict[str, Any]) -> bool:
        return common_name(certificate) == ("users" if sender.role is Role.USER else "station")

    async def main() -> list[int]:
        tls = {
            "server_tls": server_context(certificates),
            "client_tls": client_context(certificates, "station"),
            "admits": admits,
        }
        async with sockets.stations(round_, [*sockets.aggregators(2), sockets.SERVER], **tls) as (
            found,
            addresses,
        ):
            users = client_context(certificates, "users")
            async with Courier(addresses, tls=users) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(20)))
                # Users cannot speak for an aggregator.
                first = Party(Role.AGGREGATOR, 0)
                roster = round_.aggregator(1)._send(MessageKind.ROSTER, first, b"\xff\xff\x0f")
                with pytest.raises(ProtocolError, match="does not speak for aggregator 1"):
                    await courier.send(roster)
            station = client_context(certificates, "station")
            async with Courier(addresses, tls=station) as courier:
                with pytest.raises(ProtocolError, match="does not speak for user 3"):
                    await courier.send(next(sockets.shares(round_, range(3, 4))))
            await sockets.complete(found)
            return sockets.sums(found)

    assert sockets.run(main()) == [0, 20, 0]


def test_a_courier_that_is_turned_away_comes_again(
    sockets: ModuleType, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = sockets.silent(4)
    message = next(sockets.shares(round_, range(1)))
    turned_away = asyncio.Event()

    async def main() -> None:
        tls = {"server_tls": server_context(certificates), "connections": 1}
        async with sockets.stations(round_, sockets.aggregators(1), **tls) as (found, addresses):
            (station,) = found.values()
            monkeypatch.setattr(station._listener, "_warn", lambda text: turned_away.set())
            # In its handshake.
            _, other = await asyncio.open_connection(*addresses[message.recipient])
            while not station._listener._lines:
                await asyncio.sleep(0.001)
            users = client_context(certificates, "users")
            async with Courier(addresses, tls=users, connect_within=sockets.PATIENCE) as courier:
                sending = asyncio.create_task(courier.send(message))
                await turned_away.wait()
                other.close()
                await other.wait_closed()
                await sending
            assert len(station.roles[0].missing) == 3

    sockets.run(main())


@pytest.mark.parametrize(
    ("name", "authority", "cause"),
    [
        (None, "ours", OSError),
        ("stranger", "ours", OSError),
        ("users", "theirs", ssl.SSLCertVerificationError),
        ("plain", "", OSError),
    ],
)
def test_without_trust_nothing_is_delivered(
    sockets: ModuleType,
    certificates: Path,
    name: str | None,
    authority: str,
    cause: type[Exception],
) -> None:
    round_ = sockets.silent(4)

    async def main() -> None:
        tls = {"server_tls": server_context(certificates)}
        async with sockets.stations(round_, sockets.aggregators(1), **tls) as (found, addresses):
            context = client_context(certificates, name, authority) if authority else None
            message = next(sockets.shares(round_, range(1)))
            # asyncio closes a connection that it refuses without saying why: it may have been lost.
            times = {"connect_within": 0.2, "answer_within": 0.2}
            async with Courier(addresses, tls=context, **times) as courier:
                with pytest.raises(MissingPartyError, match="aggregator 0 cannot be") as caught:
                    await courier.send(message)
            assert isinstance(caught.value.__cause__, cause)
            (station,) = found.values()
            assert len(station.roles[0].missing) == 4

    sockets.run(main())


def test_a_party_whose_certificate_is_not_trusted_fails_the_round_at_once(
    sockets: ModuleType, certificates: Path
) -> None:
    round_ = sockets.silent(4)

    async def main() -> float:
        tls = {
            "server_tls": server_context(certificates),
            "client_tls": client_context(certificates, "station", "theirs"),
        }
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, **tls) as (found, addresses):
            users = client_context(certificates, "users")
            async with Courier(addresses, tls=users) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(4)))
            begun = asyncio.get_running_loop().time()
            said = "cannot be reached at .*: its certificate is not trusted: self-signed"
            for party in sockets.aggregators(2):
                await found[party].collect(sockets.PATIENCE)
                with pytest.raises(MissingPartyError, match=said):
                    await found[party].finish(sockets.PATIENCE)
            return asyncio.get_running_loop().time() - begun

    assert sockets.run(main()) < 0.25 * sockets.PATIENCE
