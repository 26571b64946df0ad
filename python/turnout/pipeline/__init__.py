"""Collections as jobs: answers from files, frames and streams, block by block.

>>> import turnout as tn
>>> from turnout.pipeline import scan
>>> import pyarrow as pa
>>> answers = scan(pa.table({"answer": ["yes", "no", "yes"]}), "answer")
>>> domain = tn.Domain(["no", "yes"])
>>> [answers.encoded(block, domain).codes.tolist() for block in answers.blocks()]
[[1, 0, 1]]
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
