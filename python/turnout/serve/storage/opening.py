"""Which database an address means."""

from __future__ import annotations

from pathlib import Path

from turnout.errors import InvalidValueError
from turnout.serve.storage.interface import Store
from turnout.serve.storage.sqlite import MAGIC, SQLiteStore


def open_store(address: str, keep: str | None = None) -> Store:
    """Open a store.

    Parameters
    ----------
    address
        A file of SQLite.
    keep
        ``"messages"`` or ``"tally"``, to take messages in: the store is made if it is not there.
        None, to read one that is there.

    Raises
    ------
    TurnoutError, OSError
        If it cannot be opened, or is no store.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(str(pathlib.Path(folder, "reports.db")), keep="tally")
    ...     store.keep
    ...     store.close()
    'tally'
    """
    if "://" in address:
        raise InvalidValueError(
            f"store must be a file, got an address that begins with {address.partition('://')[0]}:"
        )
    return SQLiteStore(address, keep)


def is_store(address: str | Path) -> bool:
    """Tell the address of a store from that of any other file.

    Examples
    --------
    >>> is_store("week.tally")
    False
    """
    path = Path(address)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
