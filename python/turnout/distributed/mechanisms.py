"""The mechanisms by their names: those of turnout, and those of modules that are imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from turnout import _arguments
from turnout.distributed.aggregation import REGISTERED, AggregationMechanism
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling
from turnout.distributed.verified import VerifiedAggregation
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: The mechanisms of turnout, in the order in which commands list them.
OWN: Final[tuple[type[AggregationMechanism], ...]] = (
    SamplingAggregation,
    TwoStageSampling,
    NoisyAggregation,
    VerifiedAggregation,
)


def known() -> Mapping[str, type[AggregationMechanism]]:
    """List the mechanisms by their names, those of turnout first.

    Examples
    --------
    >>> list(known())[:3]
    ['sampling', 'two_stage', 'noisy']
    """
    return {**{kind.name: kind for kind in OWN}, **REGISTERED}


def mechanism_from_dict(description: Any) -> AggregationMechanism:
    """Rebuild a mechanism from :meth:`AggregationMechanism.to_dict`.

    Parameters
    ----------
    description
        The dictionary, perhaps through JSON.

    Returns
    -------
    AggregationMechanism
        An equal mechanism.

    Raises
    ------
    CorruptDataError
        If it describes no mechanism.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(4, 100, epsilon=1.0)
    >>> mechanism_from_dict(mechanism.to_dict()) == mechanism
    True
    """
    if isinstance(description, dict):
        fields = dict(description)
        name, domain = fields.pop("mechanism", None), fields.pop("domain", None)
        chosen = known().get(name) if isinstance(name, str) else None
        if chosen is not None:
            stated = {item.name for item in dataclasses.fields(chosen)} - {"domain"}
            if set(fields) == stated:
                # To find it again could take any time, and it was found before it was written.
                if chosen._found is not None and fields[chosen._found] is None:
                    raise CorruptDataError(
                        f"not a mechanism that can be: its {chosen._found} must be given"
                    )
                try:
                    return chosen(domain=Domain.from_dict(domain), **fields)
                except (InvalidTypeError, InvalidValueError) as error:
                    raise CorruptDataError(f"not a mechanism that can be: {error}") from error
    raise CorruptDataError(f"not the description of a mechanism: {_arguments.shown(description)}")
