"""The text of a ledger: canonical JSON with a version and a checksum.

One object, keys sorted, no spaces, ASCII only: ``format`` (``"turnout-ledger"``), ``version`` (1),
``epsilon``, ``delta``, ``adjacency``, ``entries`` (a list of objects with ``mechanism``, ``rounds``
and ``label``), and ``sha256``, the SHA-256 in hexadecimal of the same text without that key. The
checksum finds accidents; whoever can write the text can also compute it again.
"""

from __future__ import annotations

from typing import Final

from turnout._documents import SealedDocument

LEDGER: Final = SealedDocument("ledger", "turnout-ledger", 1)
