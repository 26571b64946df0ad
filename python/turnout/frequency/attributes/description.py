"""Collections read back from their descriptions."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.attributes.base import Attributes, rebuilt
from turnout.frequency.attributes.parameters import SCALE, checked_epsilon
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict

__all__ = ["read_description"]


def read_description(description: Any) -> Attributes:
    """Rebuild what a description says: see :func:`collection_from_dict`."""
    match description:
        case {
            "format": "turnout-attributes",
            "version": 1,
            "scheme": str(scheme),
            "epsilon": float() | int() as epsilon,
            "attributes": list(attributes),
            "options": dict(options),
            **rest,
        } if not rest and scheme in Attributes._registry:
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
                cls = Attributes._registry[scheme]
                return rebuilt(cls, checked_epsilon(epsilon), oracles, weights, options)
            except (InvalidValueError, InvalidTypeError) as error:
                raise CorruptDataError(f"not the description of a collection: {error}") from error
    raise CorruptDataError(f"not the description of a collection: {_arguments.shown(description)}")
