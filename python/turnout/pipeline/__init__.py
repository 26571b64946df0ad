"""Collections as jobs: answers from files, frames and streams, block by block.

>>> import turnout as tn
>>> from turnout.pipeline import scan
>>> import pyarrow as pa
>>> answers = scan(pa.table({"answer": ["yes", "no", "yes"]}), "answer")
>>> domain = tn.Domain(["no", "yes"])
>>> [answers.encoded(block, domain).codes.tolist() for block in answers.blocks()]
[[1, 0, 1]]
"""

from typing import TYPE_CHECKING

from turnout._public import imported_later, listing

if TYPE_CHECKING:
    from turnout.pipeline.answers import Answers
    from turnout.pipeline.columns import GroupIndex
    from turnout.pipeline.encoding import EncodedBlock
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

#: The names of each module, imported when a name is first used.
_NAMES = {
    "turnout.pipeline.answers": ["Answers"],
    "turnout.pipeline.encoding": ["EncodedBlock"],
    "turnout.pipeline.columns": ["GroupIndex"],
    "turnout.pipeline.job": ["Job", "Totals"],
    "turnout.pipeline.pseudonyms": ["PseudonymKey"],
    "turnout.pipeline.report_set": ["ReportSet", "open_reports", "tally"],
    "turnout.pipeline.running": ["collect", "randomize"],
    "turnout.pipeline.scanning": ["scan"],
    "turnout.pipeline.sources": ["BLOCK", "Block", "Source", "open_source"],
}

if not TYPE_CHECKING:  # a checker is to refuse names that are not above
    __getattr__ = imported_later(__name__, _NAMES)
__dir__ = listing(__all__)
