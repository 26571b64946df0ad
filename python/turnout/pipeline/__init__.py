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
    from turnout.pipeline.answers import Answers
    from turnout.pipeline.encoding import EncodedBlock
    from turnout.pipeline.grouping import GroupIndex
    from turnout.pipeline.job import Job, Totals
    from turnout.pipeline.pseudonyms import PseudonymKey
    from turnout.pipeline.report_set import ReportSet, open_reports, tally
    from turnout.pipeline.running import collect, randomize
    from turnout.pipeline.scanning import scan
    from turnout.pipeline.sources import BLOCK, Block, Source, open_source

__all__ = [
    "BLOCK",
    "Answers",
    "Block",
    "EncodedBlock",
    "GroupIndex",
    "Job",
    "PseudonymKey",
    "ReportSet",
    "Source",
    "Totals",
    "collect",
    "open_reports",
    "open_source",
    "randomize",
    "scan",
    "tally",
]

#: The modules of names, imported when a name is first used.
_NAMES_LATER = {
    "BLOCK": "turnout.pipeline.sources",
    "Answers": "turnout.pipeline.answers",
    "Block": "turnout.pipeline.sources",
    "EncodedBlock": "turnout.pipeline.encoding",
    "GroupIndex": "turnout.pipeline.grouping",
    "Job": "turnout.pipeline.job",
    "PseudonymKey": "turnout.pipeline.pseudonyms",
    "ReportSet": "turnout.pipeline.report_set",
    "Source": "turnout.pipeline.sources",
    "Totals": "turnout.pipeline.job",
    "collect": "turnout.pipeline.running",
    "open_reports": "turnout.pipeline.report_set",
    "open_source": "turnout.pipeline.sources",
    "randomize": "turnout.pipeline.running",
    "scan": "turnout.pipeline.scanning",
    "tally": "turnout.pipeline.report_set",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES_LATER:
        return getattr(importlib.import_module(_NAMES_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES_LATER})
