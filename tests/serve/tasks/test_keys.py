"""The keys that reports are sealed with: what a client does when they change or cannot be had."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from tests.serve.tasks.rounds import Round

from turnout import _core
from turnout.serve.tasks.client import Client
from turnout.serve.tasks.peers import PeerUnavailableError

VOTES = [0, 0, 0, 1, 1, -1]
SUMS = (3, 2, 0)


def test_a_key_that_is_not_known_is_named(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports([0])
    other = (round_.leader_file.key.config_id + 1) % 256
    round_.leader_file = dataclasses.replace(round_.leader_file, key=_core.HpkeKey.generate(other))
    round_.start()
    assert round_.errors(body) == ["outdated_config"]


def test_a_client_takes_new_keys(begin: Callable[..., Round]) -> None:
    round_ = begin()
    client = Client(round_.client_file)
    other = (round_.leader_file.key.config_id + 1) % 256
    round_.leader_file = dataclasses.replace(round_.leader_file, key=_core.HpkeKey.generate(other))
    round_.start()
    assert client.upload(np.array(VOTES)) == {"accepted": 6}
    assert round_.collect().sums == SUMS


def test_a_client_uploads_while_the_helper_is_away(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.before = lambda role, method, path: 503 if role == "helper" else None
    assert round_.upload(VOTES) == {"accepted": 6}
    # The helper comes back.
    round_.before = lambda role, method, path: None
    assert round_.collect().sums == SUMS


def test_a_client_asks_the_helper_for_its_keys_if_it_can(begin: Callable[..., Round]) -> None:
    round_ = begin()
    other = _core.HpkeKey.generate((round_.helper_file.key.config_id + 1) % 256)
    round_.helper_file = dataclasses.replace(round_.helper_file, key=other)
    round_.start()
    assert round_.upload(VOTES) == {"accepted": 6}
    assert round_.collect().sums == SUMS


def test_a_client_without_keys_of_a_helper_that_is_away_says_so(
    begin: Callable[..., Round],
) -> None:
    round_ = begin(janus=("helper",))
    assert round_.client_file.helper_config is None
    round_.before = lambda role, method, path: 503 if role == "helper" else None
    with pytest.raises(PeerUnavailableError, match="the helper at"):
        round_.upload(VOTES)
