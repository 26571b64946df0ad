"""What the paper says that a round costs each party."""

from __future__ import annotations

from turnout import _arguments
from turnout.distributed.aggregation import Aggregation
from turnout.distributed.costs import Costs


def paper_costs(mechanism: Aggregation) -> dict[str, Costs]:
    """Evaluate Table 1 of Yang et al. for one party of each role.

    Bytes are those of bare elements and numbers, of ``ceil(log2 q)``, ``ceil(log2 n)`` and
    ``ceil(log2 N)`` bits, without headers. The table is for users as parties (DPDS) and for
    two-stage sampling (TSS) in which as many users are elected as report an item; for other ways to
    add up there are none.

    Parameters
    ----------
    mechanism
        Sampling or noise among parties, or two-stage sampling.

    Returns
    -------
    dict
        Costs by role.

    Raises
    ------
    InvalidTypeError
        If the mechanism is of another kind.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.SamplingAggregation(
    ...     30, 1000, rate=0.5, floor=33, parties="users"
    ... )
    >>> paper_costs(mechanism)["user"].draws  # (n - 1) N
    29970
    """
    _arguments.instance("mechanism", mechanism, Aggregation, "distributed aggregation")
    return mechanism.paper_costs()
