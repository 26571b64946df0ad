"""The registry of mechanisms by name: those of turnout, and those of imported modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from turnout import _arguments
from turnout.distributed.aggregation import REGISTERED, AggregationMechanism
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.parameters import Parameters
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling
from turnout.distributed.verified import VerifiedAggregation
from turnout.distributed.verified_sum import VerifiedSum
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

P = TypeVar("P", bound=Parameters)

#: The mechanisms of turnout, in the order in which commands list them.
OWN: Final[tuple[type[AggregationMechanism], ...]] = (
    SamplingAggregation,
    TwoStageSampling,
    NoisyAggregation,
    VerifiedAggregation,
)


def known() -> Mapping[str, type[AggregationMechanism]]:
    """List the mechanisms by name, those of turnout first.

    Examples
    --------
    >>> list(known())[:3]
    ['sampling', 'two_stage', 'noisy']
    """
    return {**{kind.name: kind for kind in OWN}, **REGISTERED}


def mechanism_from_dict(description: Any) -> AggregationMechanism | VerifiedSum:
    """Restore a mechanism from its ``to_dict()``.

    Parameters
    ----------
    description
        The dictionary, also after a round trip through JSON.

    Returns
    -------
    AggregationMechanism or VerifiedSum
        An equal mechanism.

    Raises
    ------
    CorruptDataError
        If the dictionary does not describe a mechanism.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(4, 100, epsilon=1.0)
    >>> mechanism_from_dict(mechanism.to_dict()) == mechanism
    True
    """
    kinds: dict[str, type[AggregationMechanism] | type[VerifiedSum]] = {**known()}
    kinds[VerifiedSum.name] = VerifiedSum
    return rebuilt(description, kinds)


def rebuilt(description: Any, kinds: Mapping[str, type[P]]) -> P:
    """Restore a mechanism of one of several kinds, by name.

    Raises
    ------
    CorruptDataError
        If it describes none of them.
    """
    if isinstance(description, dict):
        fields = dict(description)
        name, domain = fields.pop("mechanism", None), fields.pop("domain", None)
        chosen = kinds.get(name) if isinstance(name, str) else None
        if chosen is not None:
            stated = {item.name for item in dataclasses.fields(chosen)} - {"domain"}
            if set(fields) == stated:
                # To find it again could take any time, and it was found before it was written.
                if chosen._found is not None and fields[chosen._found] is None:
                    raise CorruptDataError(
                        f"not a valid mechanism: its {chosen._found} must be given"
                    )
                try:
                    return chosen(domain=chosen._read_domain(domain), **fields)
                except (InvalidTypeError, InvalidValueError) as error:
                    raise CorruptDataError(f"not a valid mechanism: {error}") from error
    raise CorruptDataError(f"not the description of a mechanism: {_arguments.shown(description)}")
