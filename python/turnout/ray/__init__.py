"""Collections on a Ray cluster: what :mod:`turnout.pipeline` does, part by part in tasks.

The reports are the same: block ``i`` of the rows draws from the same streams of the job's secret,
whoever works on it, when, and how often. Needs the extra ``ray``; Ray is imported at the first
call.
"""

from turnout._public import listing
from turnout.ray.collecting import collect, randomize, tally

__all__ = ["collect", "randomize", "tally"]

__dir__ = listing(__all__)
