"""Whoever connects chooses the certificate; it decides about a message, never about the round."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest

from turnout.distributed import Party, Role
from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport.listener import Admission
from turnout.errors import InvalidTypeError, ProtocolError

SECRET = "carol@example.org"


def by_name(sender: Party, certificate: dict[str, Any]) -> bool:
    """Take it for granted, as one does, that there is a subject with a common name."""
    names = dict(pair for group in certificate["subject"] for pair in group)
    return bool(names["commonName"] == str(sender))


OTHERS: dict[str, dict[str, Any]] = {
    "none": {},
    "without a name": {"subject": ((("emailAddress", SECRET),),)},
    "of another make": {"subject": ((SECRET,),)},
    "of no subject": {"subject": 5, "subjectAltName": (("DNS", SECRET),)},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_certificate_of_another_kind_refuses_the_message(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    admission, sender = Admission(by_name), Party(Role.USER, 3)
    good = {"subject": ((("commonName", "user 3"),),)}
    with caplog.at_level(logging.DEBUG, "turnout"):
        admission.check(sender, good)
        with pytest.raises(ProtocolError, match="does not speak for user 4"):
            admission.check(Party(Role.USER, 4), good)
        assert not caplog.records
        with pytest.raises(ProtocolError, match="connection speaks for user 3"):
            admission.check(sender, OTHERS[name])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "admits raised" in record.getMessage()
    assert "test_admission.py" in record.getMessage()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("value", [None, 1, "yes", [True], object()])
def test_what_is_neither_true_nor_false_refuses_the_message(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    admission = Admission(lambda sender, certificate: value)
    with caplog.at_level(logging.WARNING, "turnout"), pytest.raises(ProtocolError, match="user 3"):
        admission.check(Party(Role.USER, 3), {})
    assert "must give True or False" in caplog.text


def test_what_can_decide_nothing_is_refused_at_once(sockets: ModuleType) -> None:
    async def later(sender: Party, certificate: dict[str, Any]) -> bool:
        return False

    wrong: list[Any] = [later, True, "yes"]
    for admits in wrong:
        with pytest.raises(InvalidTypeError, match="admits must be a function"):
            Station([sockets.silent().server()], {}, admits=admits)


@pytest.mark.parametrize("raised", [KeyError("subject"), RecursionError(), MemoryError()])
def test_a_round_goes_on_where_admits_raises(sockets: ModuleType, raised: Exception) -> None:
    round_ = sockets.silent(4)
    unlucky = Party(Role.USER, 2)
    calls: list[Party] = []

    def admits(sender: Party, certificate: dict[str, Any]) -> bool:
        calls.append(sender)
        if sender == unlucky and calls.count(unlucky) <= 2:
            raise raised
        return True

    async def main() -> list[int]:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, admits=admits) as (found, addresses):
            async with Courier(addresses) as courier:
                messages = list(sockets.shares(round_, range(4)))
                undelivered = await courier.send_all(messages)
                assert [each.message.sender for each in undelivered] == [unlucky] * 2
                assert {type(each.error) for each in undelivered} == {ProtocolError}
                assert all("cannot tell" in str(each.error) for each in undelivered)
                assert not await courier.send_all(each.message for each in undelivered)
            await sockets.complete(found)
            result: list[int] = sockets.sums(found)
            return result

    assert sockets.run(main()) == [0, 4, 0]
