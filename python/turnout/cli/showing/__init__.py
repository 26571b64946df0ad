"""What is shown of a tally on a terminal, as JSON and as a picture: one module for each kind."""

from __future__ import annotations

from typing import Any, Final

from turnout import Plan, Tally
from turnout.cli.showing.frequencies import Attributes, Frequencies, Ordered
from turnout.cli.showing.means import Distributions, Means
from turnout.cli.showing.shown import Showing
from turnout.distribution import DistributionTally
from turnout.errors import InvalidTypeError
from turnout.frequency.attributes import AttributeTally
from turnout.frequency.ordered import HierarchicalTally
from turnout.mean import MeanTally

_KINDS: Final[dict[type[Any], Showing]] = {
    DistributionTally: Distributions(),
    Tally: Frequencies(),
    HierarchicalTally: Ordered(),
    AttributeTally: Attributes(),
    MeanTally: Means(),
}


def showing(plan: Plan) -> Showing:
    """Find how the tallies of a plan are shown.

    Raises
    ------
    InvalidTypeError
        If commands show no tallies of this kind.

    Examples
    --------
    >>> import turnout as tn
    >>> showing(tn.Plan(tn.mean.Duchi(1.0, (0, 24)), tn.Everyone())).asked(tn.Bounds(0, 24))
    ('numbers', 'from 0 to 24')
    """
    kind = plan.oracle.tally_type
    found = next((_KINDS[each] for each in kind.__mro__ if each in _KINDS), None)
    if found is None:
        raise InvalidTypeError(f"there is no command that shows a {kind.__name__}")
    return found
