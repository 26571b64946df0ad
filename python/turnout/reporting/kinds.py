"""Which wording a kind of question has."""

from __future__ import annotations

from typing import Any, Final

from turnout.collecting.plan import Plan
from turnout.distribution.square_wave import DistributionTally
from turnout.errors import InvalidTypeError
from turnout.frequency.attributes.estimate import AttributeTally
from turnout.frequency.ordered.levels import HierarchicalTally
from turnout.frequency.tally import Tally
from turnout.mean.tally import MeanTally
from turnout.reporting.contents import Wording
from turnout.reporting.frequencies import AttributeWording, FrequencyWording, OrderedWording
from turnout.reporting.means import DistributionWording, MeanWording

#: How the shares of one question are told, whatever it was asked with.
SHARES: Final = FrequencyWording()

_KINDS: Final[dict[type[Any], Wording]] = {
    DistributionTally: DistributionWording(),
    Tally: SHARES,
    HierarchicalTally: OrderedWording(),
    AttributeTally: AttributeWording(),
    MeanTally: MeanWording(),
}


def wording(plan: Plan) -> Wording:
    """Find how the tallies of a plan are told.

    Raises
    ------
    InvalidTypeError
        If there is no report of tallies of this kind.
    """
    kind = plan.oracle.tally_type
    found = next((_KINDS[each] for each in kind.__mro__ if each in _KINDS), None)
    if found is None:
        raise InvalidTypeError(f"tally must be of a kind that reports tell, got a {kind.__name__}")
    return found
