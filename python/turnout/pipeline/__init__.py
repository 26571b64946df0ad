"""Collections as jobs: answers from files, frames and streams, processed in blocks.

>>> import turnout as tn
>>> from turnout.pipeline import scan
>>> import pyarrow as pa
>>> answers = scan(pa.table({"answer": ["yes", "no", "yes"]}), "answer")
>>> tally = tn.pipeline.collect(answers, tn.DirectEncoding(1.0, ["no", "yes"]), seed=1)
>>> tally.received
3
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
