"""Choose the database for an address."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from turnout.errors import InvalidValueError
from turnout.serve.storage.interface import Store
from turnout.serve.storage.postgresql import PostgreSQLStore, shown
from turnout.serve.storage.sqlite import MAGIC, SQLiteStore

#: What addresses of PostgreSQL begin with.
POSTGRESQL: Final = ("postgresql://", "postgres://")


def open_store(address: str, keep: str | None = None) -> Store:
    """Open a store.

    Parameters
    ----------
    address
        A file of SQLite, or a database of PostgreSQL: ``postgresql://user@host/name``.
    keep
        ``"messages"`` or ``"tally"``, to take messages in: the store is made if it does not exist.
        None, to read an existing store.

    Raises
    ------
    TurnoutError, OSError
        If it cannot be opened, or is not a store.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(str(pathlib.Path(folder, "reports.db")), keep="tally")
    ...     store.keep
    ...     store.close()
    'tally'
    """
    if address.startswith(POSTGRESQL):
        return PostgreSQLStore(address, keep)
    if "://" in address:
        raise InvalidValueError(
            "store must be a file or an address that begins with postgresql://, got one that "
            f"begins with {address.partition('://')[0]}://"
        )
    return SQLiteStore(address, keep)


def place_of(address: str | Path) -> str:
    """Return an address without its password, for use in messages.

    Examples
    --------
    >>> place_of("postgresql://me:secret@db/reports"), place_of("week.tally")
    ('postgresql://me@db/reports', 'week.tally')
    """
    text = str(address)
    return shown(text) if text.startswith(POSTGRESQL) else text


def is_store(address: str | Path) -> bool:
    """Return whether an address is that of a store.

    Examples
    --------
    >>> is_store("postgresql://localhost/reports"), is_store("week.tally")
    (True, False)
    """
    if str(address).startswith(POSTGRESQL):
        return True
    path = Path(address)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
