"""A mechanism of somebody else's module: its roles, messages and words, in rounds and commands."""

from __future__ import annotations

import asyncio
import dataclasses
import html
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import turnout as tn
from turnout import distributed as td
from turnout._values import settle
from turnout.accounting import DiscreteLaplaceNoise
from turnout.collecting.intervals import StatisticModel
from turnout.distributed.mechanisms import known
from turnout.distributed.messages import MessageKind
from turnout.distributed.noise import NOISES
from turnout.distributed.roles.base import Participant, State, absent
from turnout.distributed.rounds import exchange
from turnout.distributed.transport import Courier, Station
from turnout.errors import (
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
)
from turnout.frequency.estimation.estimators import Estimation

#: Numbers of its own: who mixes, and what is sent to it and by it.
MIXER, SLIP, MIXED = td.Role(128), MessageKind(128), MessageKind(129)


class MixedUser(td.User):
    """A user who sends one vector, with noise of its own, to the mixer."""

    _takes: ClassVar[Mapping[MessageKind, int]] = {}
    missing = ()

    def _forget(self) -> None: ...
    def _accept(self, message: td.Message) -> list[td.Message]:
        raise AssertionError

    def _report(self, code: int) -> list[td.Message]:
        vector = self._mechanism._user_vector(code)
        self.costs += self._mechanism._vector_costs()
        self.state = State.DONE
        return [self._send(SLIP, td.Party(MIXER), vector.astype("<i8").tobytes())]


class Mixer(Participant):
    """It waits for all users, and sends their sum, which says nothing of who sent what."""

    _role = MIXER
    _users_report = True

    def __init__(self, mechanism: Any, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._slips: dict[int, Any] = {}

    @property
    def missing(self) -> tuple[td.Party, ...]:
        return absent(td.Role.USER, self._mechanism.users, self._slips)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        return {SLIP: 8 * self._mechanism.domain.size}

    def _forget(self) -> None:
        self._slips.clear()

    def _accept(self, message: td.Message) -> list[td.Message]:
        users = self._mechanism.users
        user = self._sender(message, td.Role.USER, users, self._slips, State.COLLECTING)
        if len(message.payload) != self._takes[SLIP]:
            raise MalformedMessageError("a slip must have a number for each item")
        self._slips[user] = np.frombuffer(message.payload, "<i8")
        return []

    def close(self) -> list[td.Message]:
        self._check_open()
        self._check_missing(self.missing)
        total = np.sum(list(self._slips.values()), axis=0)
        self._forget()
        self.state = State.DONE
        return [self._send(MIXED, td.Party(td.Role.SERVER), total.astype("<i8").tobytes())]


class MixedServer(td.AggregatingServer):
    """It publishes what the mixer sends."""

    @property
    def missing(self) -> tuple[td.Party, ...]:
        return (td.Party(MIXER),) if self.state is State.COLLECTING else ()

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        return {MIXED: 8 * self._mechanism.domain.size}

    def _forget(self) -> None: ...
    def _accept(self, message: td.Message) -> list[td.Message]:
        self._sender(message, MIXER, 1, (), State.COLLECTING)
        total = np.frombuffer(message.payload, "<i8")
        self._publish(self._mechanism.field._reduce(total), self._mechanism.users)
        return []


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixedNoise(td.AggregationMechanism):
    """Every user adds discrete Laplace noise of its own, which protects it from everybody."""

    name: ClassVar[str] = "mixed_noise"
    _found: ClassVar[str | None] = "scale"
    _roles = (MixedUser, Mixer, MixedServer)
    _conduct: ClassVar[str] = "users may send what they like"

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None and self.delta is None:
            settle(self, delta=0.0)
        super().__post_init__()
        settle(self, scale=self._calibrated("scale", DiscreteLaplaceNoise(1.0), "scale"))

    @property
    def _pure(self) -> bool:
        return True

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        return False

    @property
    def accounting(self) -> DiscreteLaplaceNoise:
        assert self.scale is not None
        return DiscreteLaplaceNoise(self.scale)

    def _trust(self) -> list[str]:
        return ["nobody must be trusted"]

    def _adders(self) -> str:
        return "a mixer"

    def _told(self) -> list[tuple[str, str]]:
        return [*super()._told(), ("scale", f"{self.scale:.4g}")]

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "scale": self.scale}

    def _law(self, pieces: int) -> Any:
        assert self.scale is not None
        # The noise of one user is a whole piece.
        return NOISES["discrete_laplace"](self.scale, 1, pieces)

    @property
    def _largest_sum(self) -> int:
        return self.users + 2 * int(self._law(self.users).tail_bound(2.0**-64))

    def _user_vector(self, code: int, seed: int | None = None) -> Any:
        vector = self._law(1).piece(self.domain.size, seed)
        vector[code] += 1
        return vector

    def _contribution(self, items: int | None = None, seed: int | None = None) -> Any:
        raise AssertionError("nobody adds anything to the sum")

    _contributors = 0  # type: ignore[assignment]

    def _vector_costs(self) -> td.Costs:
        return td.Costs(noise=self.domain.size)

    def _contribution_costs(self, items: int) -> td.Costs:
        return td.Costs()

    def _decode(self, sums: Any) -> Any:
        middle = self.users // 2
        shifted = self.field._add(sums, self.field._reduce(np.full(sums.shape, -middle)))
        return self.field._lift(shifted) + middle

    def _estimate_sums(self, sums: Any, received: int) -> Estimation:
        model = StatisticModel(a=0.0, b=received, v0=self._law(received).variance, v1=0.0)
        statistic = sums.astype(np.float64)
        frequencies = model.frequency(statistic)
        return Estimation(frequencies, model.variance(frequencies), model, statistic)

    def _reach(self, held: Any, items: int, received: int, chance: float) -> tuple[int, int]:
        noise = self._law(items * received).tail_bound(chance)
        return held[0] - noise, held[1] + noise

    def _added_up(self, codes: Any, seed: int | None) -> Any:
        counts = np.bincount(codes, minlength=self.domain.size)
        noise = self._law(self.users).total(self.domain.size, seed)
        costs = {"user": td.Costs(messages=self.users, noise=self.users * self.domain.size)}
        return self.field._reduce(counts + noise), td.CostLedger(costs, {"user": self.users}, {})


USERS = 400
ANSWERS = ["never"] * 100 + ["often"] * 300
LABELS = tn.Domain(["never", "often"])


def test_its_round_runs_with_roles_and_messages_of_its_own() -> None:
    mechanism = MixedNoise(LABELS, USERS, epsilon=4.0)
    round_ = td.Round.from_bytes(td.Round.start(mechanism).to_bytes())
    assert round_.mechanism == mechanism
    kinds = {party.role for party in round_.parties}
    assert kinds == {td.Role.USER, MIXER, td.Role.SERVER}
    result = exchange(round_, ANSWERS)
    # 8 standard deviations, and the truth is one of the sums that may be.
    spread = 8 * math.sqrt(USERS * mechanism._law(1).variance)
    assert (np.abs(result.sums - [100, 300]) < spread).all()
    assert result.costs.parties == {"user": USERS, "role 128": 1, "server": 1}
    assert result.costs.totals["user"].noise == 2 * USERS
    same = mechanism.run(ANSWERS, seed=3)
    assert same.estimate.plan == mechanism


def test_stations_close_its_collection_when_all_users_reported() -> None:
    round_ = td.Round.start(MixedNoise(LABELS, 3, epsilon=4.0))

    async def main() -> Any:
        addresses: dict[td.Party, Any] = {}
        server = round_.server()
        async with (
            Station([server], addresses) as last,
            Station([round_.role(td.Party(MIXER))], addresses) as mixing,
        ):
            addresses[server.party] = last.address
            addresses[td.Party(MIXER)] = mixing.address
            async with Courier(addresses) as courier:
                sent = (each for user in range(3) for each in round_.user(user).report("often"))
                assert not await courier.send_all(sent)
            # Were it not told that all reported, it would wait for hours.
            await asyncio.wait_for(mixing.collect(10_000), 60)
            await last.finish(60)
        return server.sums

    assert asyncio.run(main()).shape == (2,)


def test_its_messages_are_written_read_and_refused() -> None:
    round_ = td.Round.start(MixedNoise(LABELS, 3, epsilon=1.0))
    (message,) = round_.user(1).report("often")
    assert td.Message.from_bytes(message.to_bytes()) == message
    assert str(message.recipient) == "role 128 0"
    mixer, server = round_.role(td.Party(MIXER)), round_.server()
    assert isinstance(mixer, Mixer)
    assert mixer.receive(message.to_bytes()) == []
    wrong = td.Message(SLIP, round_.identifier, mixer.party, server.party, b"").to_bytes()
    with pytest.raises(MalformedMessageError, match="of kind kind 129, got kind 128"):
        server.receive(wrong)
    with pytest.raises(MissingPartyError, match="user 0, user 2"):
        mixer.close()
    with pytest.raises(ProtocolError, match="the server has nothing to close"):
        server.close()
    with pytest.raises(MissingPartyError, match="the server is still waiting for role 128 0"):
        server.estimate()


def test_commands_know_it(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("answer\n" + "\n".join(ANSWERS) + "\n", encoding="utf-8")
    asked = ("aggregate", path, "-c", "answer", "-m", "mixed-noise", "-e", 4, "--seed", 1)
    found = json.loads(turnout(*asked, "--json").stdout)
    mechanism = MixedNoise(LABELS, USERS, epsilon=4.0)
    assert found["guarantee"]["assumptions"] == list(mechanism.guarantee.assumptions)
    assert "users may send what they like" in found["guarantee"]["assumptions"]
    assert found["parameters"] == {"field": mechanism.field.modulus, "scale": mechanism.scale}
    expected = mechanism.run(ANSWERS, seed=1).estimate.frequencies
    shares = {each["label"]: each["frequency"] for each in found["estimates"]}
    assert [shares[label] for label in LABELS.labels] == expected.tolist()
    page = tmp_path / "page.html"
    shown = turnout(*asked, "--report", page)
    assert "mixed noise" in shown.stdout
    assert "nobody must be trusted" in " ".join(shown.stdout.split())
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert "It rests on this: users may send what they like." in text
    assert "a mixer" in text
    refused = turnout(*asked, "--floor", 3)
    assert refused.exit_code == 2
    assert "not to mixed-noise" in " ".join(refused.stderr.split())


def test_no_other_mechanism_can_take_a_name() -> None:
    assert known()["mixed_noise"] is MixedNoise
    with pytest.raises(InvalidValueError, match="got 'noisy', the name of turnout"):

        class Another(td.AggregationMechanism):
            name: ClassVar[str] = "noisy"

    assert known()["noisy"] is td.NoisyAggregation


def test_numbers_below_those_of_mechanisms_stay_unknown() -> None:
    for kind in (td.Role, MessageKind):
        assert kind(200) is kind(200)
        assert kind(200) not in list(kind)
        for value in (0, 7, 127, 256, -1):
            with pytest.raises(ValueError, match="is not a valid"):
                kind(value)
