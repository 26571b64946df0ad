"""Several servers on one PostgreSQL, which is not always there."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.serve.test_kills import PLAN, Load, check, killed
from tests.serve.waiting import until

import turnout as tn
from turnout.errors import CorruptDataError, StoreUnavailableError, UnsupportedVersionError
from turnout.serve.storage.interface import NONCE_BYTES, StoredTally, record
from turnout.serve.storage.opening import open_store


def records(number: int) -> list[bytes]:
    return [record(secrets.token_bytes(16), b"yes") for _ in range(number)]


def together(*listed: list[bytes]) -> bytes:
    return b"".join(sorted(one for each in listed for one in each))


def test_servers_at_once_have_shards_of_their_own(database: Any) -> None:
    stores = [open_store(database.address, "tally") for _ in range(3)]
    plan = stores[0].number_of("f" * 64, "{}")
    for number, store in enumerate(stores, 1):
        with store.writing() as writing:
            assert writing.tally(plan, "[]") is None
            writing.put_tallies(plan, [StoredTally("[]", number, b"123")])
            writing.add_refused({"malformed": 1})
    with stores[0].reading() as reading:
        assert [row.received for row in reading.tallies(plan)] == [1, 2, 3]
        assert reading.refused() == {"malformed": 3}
    # Who comes after one that ended goes on with its shard.
    stores[1].close()
    next_ = open_store(database.address, "tally")
    with next_.writing() as writing:
        assert writing.tally(plan, "[]") == ("[]", 2, b"123")
    for store in (stores[0], stores[2], next_):
        store.close()


def test_a_message_that_comes_to_two_servers_counts_once(database: Any) -> None:
    one, two = (open_store(database.address, "tally") for _ in range(2))
    same = records(50)
    with one.writing() as writing:
        assert writing.remember(together(same)) == {}
    with two.writing() as writing:
        assert writing.remember(together(same, records(3))).keys() == {
            each[:NONCE_BYTES] for each in same
        }
    with one.reading() as reading:
        assert reading.remembered() == 53
    one.close()
    two.close()


def test_a_shard_is_not_written_by_who_lost_it(database: Any) -> None:
    one = open_store(database.address, "tally")
    plan = one.number_of("f" * 64, "{}")
    with one.writing() as writing:
        writing.put_tallies(plan, [StoredTally("[]", 5, b"123")])
        before = writing.generation
    # As if the database had been started again.
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"
        until(lambda: not other.execute(held).fetchall())
    two = open_store(database.address, "tally")
    with two.writing() as writing:
        assert writing.tally(plan, "[]") == ("[]", 5, b"123")
    with pytest.raises(StoreUnavailableError), one.writing():
        pass
    with one.writing() as writing:
        assert writing.generation != before
        assert writing.tally(plan, "[]") is None
    one.close()
    two.close()


def test_what_is_no_store_is_told(database: Any) -> None:
    with pytest.raises(CorruptDataError, match="contains no turnout store"):
        open_store(database.address)
    store = open_store(database.address, "tally")
    store.close()
    with psycopg.connect(database.address, autocommit=True) as connection:
        connection.execute("UPDATE turnout_facts SET value = '7' WHERE name = 'version'")
    for keep in ("tally", None):
        with pytest.raises(UnsupportedVersionError, match=r"has version 7; .* reads up to 1"):
            open_store(database.address, keep)


def test_no_password_is_shown(database: Any) -> None:
    address = f"postgresql://turnout:verysecret@127.0.0.1:{database.port}/nothing"
    with pytest.raises(StoreUnavailableError, match=r"turnout@127.*nothing") as refused:
        open_store(address, "tally")
    assert "verysecret" not in str(refused.value)


def test_without_psycopg_the_command_says_what_to_install(tmp_path: Any) -> None:
    PLAN.write(tmp_path / "plan.json")
    program = (
        "import sys; sys.modules['psycopg'] = None; sys.argv[1:] = ['serve', "
        f"{str(tmp_path / 'plan.json')!r}, '--store', 'postgresql://127.0.0.1:1/x']; "
        "from turnout.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 1
    assert "pip install 'turnout[postgresql]'" in done.stderr


@pytest.mark.everyday
def test_two_servers_of_which_one_is_killed_count_once(
    serving: Callable[..., Any], database: Any
) -> None:
    one, two = (serving(PLAN, store=database.address) for _ in range(2))
    load = Load([one.address, two.address])
    load.wait()
    one.kill()
    three = serving(PLAN, store=database.address)
    load.end()
    for start in range(0, len(load.unknown), 500):
        three.send(load.unknown[start : start + 500])
    assert three.send(load.acknowledged[:500]).json()["accepted"] == 0
    assert two.results()["received"] == len(load.acknowledged) + len(load.unknown)
    two.stop()
    three.stop()
    check(database.address, [*load.acknowledged, *load.unknown], [])


def test_a_server_is_killed_thirty_times(serving: Callable[..., Any], database: Any) -> None:
    killed(lambda *given: serving(*given, store=database.address), 30)


def test_a_database_that_is_gone_for_a_while_is_told(
    serving: Callable[..., Any], database: Any
) -> None:
    server = serving(PLAN, store=database.address)
    sent = [message for message in (PLAN.report(1, group="north") for _ in range(20)) if message]
    assert server.send(sent[:5]).json()["accepted"] == 5
    for how in ("fast", "immediate"):
        database.stop(how)
        answer = server.send(sent)
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert server.client.get("/results.json").status_code == 503
        assert server.client.get("/plan.json").status_code == 200
        assert server.client.get("/health").status_code == 503
        database.start()
        answer = until(lambda: answer if (answer := server.send(sent)).status_code != 503 else None)
        taken = answer.json()
        assert taken["accepted"] + taken["duplicates"] == 20
    assert server.stop() == 0
    check(database.address, sent, [])


def test_an_address_of_another_database_is_refused() -> None:
    with pytest.raises(tn.errors.InvalidValueError, match=r"begins with mysql://"):
        open_store("mysql://localhost/reports")
