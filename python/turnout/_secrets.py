"""Bytes that no message shows."""

from __future__ import annotations


class HiddenBytes(bytes):
    """A secret that is not shown where objects are: in tracebacks, logs and errors of libraries.

    Ray, for one, lists the members of an argument that it cannot send.

    Examples
    --------
    >>> HiddenBytes(b"a secret")
    <8 hidden bytes>
    >>> HiddenBytes(b"a secret") == b"a secret"
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Show how many there are."""
        return f"<{len(self)} hidden bytes>"

    __str__ = __repr__
