"""Tallies and estimates by groups: by country, by version of the program, by day.

A :class:`GroupedTally` holds one tally for each group under one plan. Its :class:`GroupedEstimate`
is a table of frequencies with intervals that can hold for all groups simultaneously, differences
between groups, and :class:`Series` over time.

**The columns of the groups are not protected.** Only the answer is randomized. Anyone who holds the
report files sees the group of each report, and anyone who holds a tally sees the number of reports
of each group. Group only by what the collector may know about each person anyway. A small group
does not weaken the privacy of its answers, since every report keeps its epsilon; it only gives wide
intervals.
"""

from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.estimate import GroupedInterval
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.tally import GroupedTally
from turnout.frequency.groups.estimate import GroupDifference, GroupedEstimate

__all__ = [
    "GroupDifference",
    "GroupedEstimate",
    "GroupedInterval",
    "GroupedTally",
    "Series",
    "tally_by_group",
]
