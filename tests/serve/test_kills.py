"""Killed under load: what was acknowledged is counted once, in the tallies too."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serve.waiting import PATIENCE

import turnout as tn
from turnout.serve.counted import count, stored_families
from turnout.serve.storage.opening import open_store

PLAN = tn.Plan(tn.SubsetSelection(1.0, 20), tn.Everyone(), groups={"region": ["north", "south"]})

#: Requests at once, and messages of each.
CLIENTS, BATCH = 6, 7


def batch(number: int) -> list[bytes]:
    region = ("north", "south")[number // 2 % 2]
    found = [PLAN.report(number % 20, group=region) for _ in range(BATCH)]
    return [each for each in found if each is not None]


class Load:
    """Clients that send without pause, and know what was acknowledged."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.acknowledged: list[bytes] = []
        self.unknown: list[bytes] = []
        #: Each set when something was acknowledged to a client.
        self._heard = [threading.Event() for _ in range(CLIENTS)]
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(number, addresses[number % len(addresses)]))
            for number in range(CLIENTS)
        ]
        for each in self._threads:
            each.start()

    def _send(self, number: int, address: str) -> None:
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            while not self._over.is_set():
                messages = batch(number)
                try:
                    answer = client.post("/reports", content=b"\n".join(messages))
                except httpx.TransportError:
                    # Nobody knows whether they were stored.
                    self.unknown += messages
                    return
                if answer.status_code == 200:
                    taken = answer.json()
                    assert (taken["accepted"], taken["refused"]) == (BATCH, {})
                    self.acknowledged += messages
                    self._heard[number].set()
                else:
                    self.unknown += messages

    def wait(self) -> None:
        """Wait until something was acknowledged to each client."""
        assert all(each.wait(PATIENCE) for each in self._heard)

    def end(self) -> None:
        self._over.set()
        for each in self._threads:
            each.join()


def check(store: object, acknowledged: Sequence[bytes], unknown: Sequence[bytes]) -> None:
    """Compare what a store has with what was sent."""
    opened = open_store(str(store))
    with opened.reading() as reading:
        kept = [line for lines in reading.messages() for line in lines.split(b"\n")]
        remembered = reading.remembered()
        (family,) = stored_families(reading)
        tally = count(opened, reading, family).tally
    opened.close()
    assert len(kept) == len(set(kept)) == remembered == tally.received
    assert set(acknowledged) <= set(kept) <= {*acknowledged, *unknown}
    collector = tn.Collector(PLAN)
    collector.accept_many(kept)
    assert tally == collector.tally()


def killed(serving: Callable[..., Any], times: int, seed: int = 0) -> None:
    """Kill a server under load so many times, each at another moment."""
    acknowledged: list[bytes] = []
    unknown: list[bytes] = []
    moments = random.Random(seed)
    for number in range(times):
        server = serving(PLAN)
        load = Load([server.address])
        # On a busy machine nothing may be acknowledged for a while, and that is tried too.
        if number % 2:
            load.wait()
        time.sleep(moments.uniform(0.02, 0.4))
        server.kill()
        load.end()
        acknowledged += load.acknowledged
        unknown += load.unknown
        check(server.store, acknowledged, unknown)
    assert acknowledged
    # A device sends again what was not acknowledged, or not heard of: it counts once.
    server = serving(PLAN)
    for start in range(0, len(unknown), 500):
        answer = server.send(unknown[start : start + 500])
        assert answer.json()["refused"] == {}
    assert server.send(acknowledged[-500:]).json()["accepted"] == 0
    assert server.stop() == 0
    check(server.store, [*acknowledged, *unknown], [])


@pytest.mark.everyday
def test_a_server_that_is_killed_keeps_what_it_acknowledged(serving: Callable[..., Any]) -> None:
    killed(serving, 2)


@pytest.mark.parametrize("store", range(10))
def test_it_does_so_a_hundred_times(serving: Callable[..., Any], store: int) -> None:
    killed(serving, 10, seed=store)


@pytest.mark.everyday
def test_two_servers_on_one_file_count_once(serving: Callable[..., Any], tmp_path: Path) -> None:
    one, two = serving(PLAN), serving(PLAN)
    load = Load([one.address, two.address])
    load.wait()
    one.kill()
    load.end()
    again = two.send(load.acknowledged[:300]).json()
    assert again["accepted"] == 0
    two.stop()
    check(tmp_path / "reports.db", load.acknowledged, load.unknown)
