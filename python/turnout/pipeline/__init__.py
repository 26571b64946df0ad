"""Collections as jobs: answers from files, frames and streams, block by block.

>>> import turnout as tn
>>> from turnout.pipeline import scan
>>> import pyarrow as pa
>>> answers = scan(pa.table({"answer": ["yes", "no", "yes"]}), "answer")
>>> domain = tn.Domain(["no", "yes"])
>>> [answers.encoded(block, domain).codes.tolist() for block in answers.blocks()]
[[1, 0, 1]]
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnout.pipeline.answers import Answers, scan
    from turnout.pipeline.encoding import EncodedBlock, GroupIndex
    from turnout.pipeline.identity import PseudonymKey
    from turnout.pipeline.sources import BLOCK, Block, Source, open_source

__all__ = [
    "BLOCK",
    "Answers",
    "Block",
    "EncodedBlock",
    "GroupIndex",
    "PseudonymKey",
    "Source",
    "open_source",
    "scan",
]

#: The modules of names, imported when a name is first used.
_NAMES_LATER = {
    "BLOCK": "turnout.pipeline.sources",
    "Answers": "turnout.pipeline.answers",
    "Block": "turnout.pipeline.sources",
    "EncodedBlock": "turnout.pipeline.encoding",
    "GroupIndex": "turnout.pipeline.encoding",
    "PseudonymKey": "turnout.pipeline.identity",
    "Source": "turnout.pipeline.sources",
    "open_source": "turnout.pipeline.sources",
    "scan": "turnout.pipeline.answers",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES_LATER:
        return getattr(importlib.import_module(_NAMES_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES_LATER})
