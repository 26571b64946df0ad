"""Tallies and estimates by groups: by country, by version of the program, by day.

A :class:`GroupedTally` holds one tally for each group under one plan; its
:class:`GroupedEstimate` is a table of frequencies with intervals that can hold for all groups at
once, differences between groups, and :class:`Series` over time.

**The columns of the groups are not protected.** Only the answer is randomized: whoever holds the
report files sees the group that each report belongs to, and whoever holds a tally sees how many
reports each group has. Group only by what the collector may know of each person anyway. A small
group does not weaken the privacy of the answers in it, every report keeps its epsilon; it gives
wide intervals.
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
