"""What a store remembers, and what it does when it cannot."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnout.errors import CorruptDataError, StoreUnavailableError, UnsupportedVersionError
from turnout.serve.storage import recent
from turnout.serve.storage.interface import (
    NONCE_BYTES,
    RECORD_BYTES,
    Store,
    StoredTally,
    parts_of,
    record,
)
from turnout.serve.storage.opening import open_store
from turnout.serve.storage.sqlite import SQLiteStore


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(tmp_path / "reports.db", "messages")
    yield made
    made.close()


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "SQLite":
        return str(tmp_path / "reports.db")
    found: str = request.getfixturevalue("database").address
    return found


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    made = open_store(address, "messages")
    yield made
    made.close()


def records(number: int) -> list[bytes]:
    return [record(secrets.token_bytes(16), b"yes") for _ in range(number)]


def together(*listed: list[bytes]) -> bytes:
    return b"".join(sorted(one for each in listed for one in each))


def test_a_message_is_remembered_once(store: Store) -> None:
    first, second = records(3), records(2)
    with store.writing() as writing:
        assert writing.remember(together(first)) == {}
    with store.writing() as writing:
        found = writing.remember(together(second, first[1:]))
    assert found == {one[:NONCE_BYTES]: one[NONCE_BYTES:] for one in first[1:]}
    with store.reading() as reading:
        assert reading.remembered() == 5
        assert reading.said(together(second, records(1))) == {
            one[:NONCE_BYTES]: one[NONCE_BYTES:] for one in second
        }


def test_more_messages_than_one_statement_takes_are_remembered(store: Store) -> None:
    first, second = records(2**14 + 3), records(2**14)
    with store.writing() as writing:
        assert writing.remember(together(first)) == {}
        assert writing.remember(together(first, second)).keys() == {
            one[:NONCE_BYTES] for one in first
        }
        assert writing.remember(together(second)).keys() == {one[:NONCE_BYTES] for one in second}
    with store.reading() as reading:
        assert reading.remembered() == 2**15 + 3
        assert len(reading.said(together(first, records(1)))) == len(first)


def test_a_file_remembers_what_moves_to_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes, transactions that fail, and messages that are taken back."""
    monkeypatch.setattr(recent, "MOST", 300)
    generator = random.Random(7)
    stores = [SQLiteStore(tmp_path / "reports.db", "tally") for _ in range(2)]
    known: dict[bytes, bytes] = {}
    for _ in range(60):
        new = [generator.randbytes(RECORD_BYTES) for _ in range(generator.randrange(60))]
        old = generator.sample(sorted(known.items()), min(len(known), generator.randrange(9)))
        sent = together(new, [name + bytes(4) for name, _ in old])
        taken_back = [one[:NONCE_BYTES] for one in new[:2]]
        with contextlib.suppress(ZeroDivisionError), generator.choice(stores).writing() as writing:
            assert writing.remember(sent) == dict(old)
            assert writing.remember(together(new)) == dict(parts_of(together(new)))
            writing.forget(taken_back)
            _ = 1 // generator.randrange(5)
            known.update(parts_of(together(new[2:])))
    with stores[0].reading() as reading:
        assert reading.remembered() == len(known)
        assert reading.said(together([name + said for name, said in known.items()])) == known
    for each in stores:
        each.close()
    connection = sqlite3.connect(tmp_path / "reports.db")
    [(moved,)] = connection.execute("SELECT count(*) FROM seen")
    connection.close()
    assert len(known) - 300 <= moved < len(known)


def test_nothing_of_a_transaction_that_fails_is_there(store: Store) -> None:
    plan = store.number_of("f" * 64, "{}")

    def fail() -> None:
        with store.writing() as writing:
            writing.remember(together(records(3)))
            writing.put_tallies(plan, [StoredTally("[]", 3, b"123")])
            writing.put_messages(b"one\ntwo")
            writing.add_refused({"malformed": 1})
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        fail()
    with store.reading() as reading:
        assert reading.remembered() == 0
        assert reading.tallies(plan) == []
        assert list(reading.messages()) == []
        assert reading.refused() == {}


def test_tallies_replace_each_other_and_refusals_add_up(store: Store) -> None:
    plan = store.number_of("f" * 64, "{}")
    assert store.number_of("f" * 64, "{}") == plan != store.number_of("e" * 64, "{}")
    for received in (3, 5):
        with store.writing() as writing:
            writing.put_tallies(plan, [StoredTally("[]", received, b"123")])
            writing.add_refused({"malformed": 2})
    store.ask(plan, "[]", 7)
    store.ask(plan, "[]", 9)
    with store.reading() as reading:
        assert reading.tallies(plan) == [("[]", 5, b"123")]
        assert reading.refused() == {"malformed": 4}
        assert reading.asked(plan) == {"[]": 9}
    with store.writing() as writing:
        assert writing.tally(plan, "[]") == ("[]", 5, b"123")
        assert writing.tally(plan, '["north"]') is None


def test_another_process_that_wrote_is_noticed(file: SQLiteStore, tmp_path: Path) -> None:
    with file.writing() as writing:
        before = writing.generation
    with file.writing() as writing:
        writing.remember(together(records(1)))
    with file.writing() as writing:
        assert writing.generation == before
    other = SQLiteStore(tmp_path / "reports.db", "messages")
    with other.writing() as writing:
        writing.remember(together(records(1)))
    other.close()
    with file.writing() as writing:
        assert writing.generation != before


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_only_its_owner_may_read_a_store(file: SQLiteStore) -> None:
    for path in Path(file.place).parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_store_is_left_as_it_is(tmp_path: Path) -> None:
    text, other = tmp_path / "week.tally", tmp_path / "other.db"
    text.write_bytes(b"a tally, perhaps")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE songs (name TEXT)")
    connection.commit()
    connection.close()
    before = text.read_bytes(), other.read_bytes()
    for path in (text, other):
        for keep in ("messages", None):
            with pytest.raises(CorruptDataError, match=f"{path.name}: is not a turnout store"):
                SQLiteStore(path, keep)
    connection = sqlite3.connect(other)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("songs",)]
    connection.close()
    assert text.read_bytes() == before[0]
    with pytest.raises(FileNotFoundError):
        SQLiteStore(tmp_path / "nothing.db", None)
    assert not (tmp_path / "nothing.db").exists()


def test_a_store_goes_on_keeping_what_it_keeps(store: Store, address: str) -> None:
    with pytest.raises(CorruptDataError, match=r"made with --keep messages.*use a(nother)? "):
        open_store(address, "tally")
    again = open_store(address)
    assert (again.keep, again.identity) == ("messages", store.identity)
    again.close()


def test_a_store_of_a_later_release_is_refused(file: SQLiteStore) -> None:
    connection = sqlite3.connect(file.place)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    for keep in ("messages", None):
        with pytest.raises(UnsupportedVersionError, match=r"has version 7; .* reads up to 1"):
            SQLiteStore(file.place, keep)


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize(
    "script",
    [
        f"DROP TABLE messages; CREATE VIEW messages AS {ENDLESS} SELECT i AS number, i FROM n",
        "CREATE TRIGGER more AFTER INSERT ON messages BEGIN DELETE FROM seen; END",
        "ALTER TABLE plans ADD COLUMN more BLOB AS (zeroblob(1000000000))",
        "DROP TABLE refused",
    ],
)
def test_a_store_with_tables_that_others_made_is_refused(file: SQLiteStore, script: str) -> None:
    file.close()
    with contextlib.closing(sqlite3.connect(file.place)) as connection:
        connection.execute("CREATE TABLE of_a_backup (number INTEGER)")
    SQLiteStore(file.place, None).close()
    with contextlib.closing(sqlite3.connect(file.place)) as connection:
        connection.executescript(script)
    for keep in (None, "messages"):
        with pytest.raises(CorruptDataError, match=r"reports\.db: its tables are not those"):
            SQLiteStore(file.place, keep)


def test_a_locked_store_is_unavailable_for_a_while(
    file: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.serve.storage.sqlite._PATIENCE", 0.05)
    impatient = SQLiteStore(file.place, "messages")
    other = sqlite3.connect(file.place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked"), impatient.writing():
        pass
    with impatient.reading() as reading:
        assert reading.remembered() == 0
    other.execute("ROLLBACK")
    other.close()
    with impatient.writing() as writing:
        assert writing.remember(together(records(1))) == {}
    impatient.close()


def test_a_full_disk_stores_nothing_and_breaks_nothing(file: SQLiteStore) -> None:
    # What SQLite says when a page cannot be had is the same for a full disk and for this bound.
    (pages,) = file._connection.execute("PRAGMA page_count").fetchone()
    file._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    kept = records(3)
    with file.writing() as writing:
        writing.remember(together(kept))
    with pytest.raises(StoreUnavailableError, match="full"), file.writing() as writing:
        writing.remember(together(records(10_000)))
    file._connection.execute("PRAGMA max_page_count = 1000000")
    with file.writing() as writing:
        assert len(writing.remember(together(kept))) == 3
        assert writing.remember(together(records(10_000))) == {}
    with file.reading() as reading:
        assert reading.remembered() == 10_003


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be moved on Windows")
def test_nothing_is_written_into_a_file_that_is_gone(file: SQLiteStore, tmp_path: Path) -> None:
    path, away = Path(file.place), tmp_path / "away.db"
    kept = records(3)
    with file.writing() as writing:
        writing.remember(together(kept))
    path.rename(away)
    for _ in range(2):
        with (
            pytest.raises(StoreUnavailableError, match="the file no longer exists"),
            file.writing(),
        ):
            pass
    assert not path.exists()
    away.rename(path)
    with file.writing() as writing:
        assert len(writing.remember(together(kept))) == 3


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be replaced on Windows")
def test_another_store_of_the_same_name_is_not_written_into(
    file: SQLiteStore, tmp_path: Path
) -> None:
    other = SQLiteStore(tmp_path / "other.db", "messages")
    other.close()
    (tmp_path / "other.db").replace(file.place)
    for _ in range(2):
        with (
            pytest.raises(StoreUnavailableError, match="the file was replaced: restart the server"),
            file.writing(),
        ):
            pass
    found = SQLiteStore(file.place, None)
    with found.reading() as reading:
        assert reading.remembered() == 0
    found.close()
