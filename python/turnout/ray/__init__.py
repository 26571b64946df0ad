"""Collections on a Ray cluster: the work of :mod:`turnout.pipeline` as tasks, in parts.

The reports are the same: block ``i`` of the rows draws from the same streams of the job's secret,
independent of which worker processes it, when, and how often. It needs the extra ``ray``; Ray is
imported at the first call.
"""

from turnout._public import listing
from turnout.ray.collecting import collect, randomize, tally
from turnout.ray.records import sample

__all__ = ["collect", "randomize", "sample", "tally"]

__dir__ = listing(__all__)
