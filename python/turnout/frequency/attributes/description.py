"""Collections read back from their descriptions."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.attributes.base import AttributeCollection
from turnout.frequency.attributes.parameters import SCALE, checked_epsilon, rebuilt
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict

__all__ = ["collection_from_dict"]


def collection_from_dict(description: Any) -> AttributeCollection:
    """Rebuild a collection from its description.

    Parameters
    ----------
    description
        What :meth:`AttributeCollection.to_dict` gave, perhaps through JSON.

    Returns
    -------
    AttributeCollection
        An equal collection.

    Raises
    ------
    CorruptDataError
        If the description is not one of a collection that this release knows.

    Examples
    --------
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"a": 2, "b": 3}, padding="fake")
    >>> collection_from_dict(one.to_dict()) == one
    True
    """
    match description:
        case {
            "format": "turnout-attributes",
            "version": 1,
            "scheme": str(scheme),
            "epsilon": float() | int() as epsilon,
            "attributes": list(attributes),
            "options": dict(options),
            **rest,
        } if not rest and scheme in AttributeCollection._registry:
            oracles: dict[str, FrequencyOracle] = {}
            weights: dict[str, int] = {}
            for attribute in attributes:
                match attribute:
                    case {"name": str(name), "oracle": oracle, "weight": int(weight), **more} if (
                        not more and name not in oracles and 0 < weight <= SCALE
                    ):
                        oracles[name] = oracle_from_dict(oracle)
                        weights[name] = weight
                    case _:
                        raise CorruptDataError(
                            f"not the description of an attribute: {_arguments.shown(attribute)}"
                        )
            try:
                cls = AttributeCollection._registry[scheme]
                return rebuilt(cls, checked_epsilon(epsilon), oracles, weights, options)
            except (InvalidValueError, InvalidTypeError) as error:
                raise CorruptDataError(f"not the description of a collection: {error}") from error
    raise CorruptDataError(f"not the description of a collection: {_arguments.shown(description)}")
