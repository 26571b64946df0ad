"""How each kind of question is told."""

from __future__ import annotations

from typing import Any, Final

from turnout.collecting.plan import Plan
from turnout.distribution.square_wave import DistributionTally
from turnout.errors import InvalidTypeError
from turnout.frequency.attributes.estimate import AttributeTally
from turnout.frequency.ordered.levels import HierarchicalTally
from turnout.frequency.tally import Tally
from turnout.mean.tally import MeanTally
from turnout.reporting.frequencies import OrderedShares, Shares, SharesOfQuestions
from turnout.reporting.means import Distributions, Means
from turnout.reporting.telling import Telling

#: How the shares of one question are told, whatever it was asked with.
SHARES: Final = Shares()

_KINDS: Final[dict[type[Any], Telling]] = {
    DistributionTally: Distributions(),
    Tally: SHARES,
    HierarchicalTally: OrderedShares(),
    AttributeTally: SharesOfQuestions(),
    MeanTally: Means(),
}


def telling(plan: Plan) -> Telling:
    """Find how the tallies of a plan are told.

    Raises
    ------
    InvalidTypeError
        If nobody tells tallies of this kind.

    Examples
    --------
    >>> import turnout as tn
    >>> telling(tn.Plan(tn.mean.Duchi(1.0, (0, 24)), tn.Everyone())).asked(tn.Bounds(0, 24))
    ('numbers', 'from 0 to 24')
    """
    kind = plan.oracle.tally_type
    found = next((_KINDS[each] for each in kind.__mro__ if each in _KINDS), None)
    if found is None:
        raise InvalidTypeError(f"tally must be of a kind that can be shown, got a {kind.__name__}")
    return found
