"""Rebuilding of mechanisms from their descriptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from turnout import _arguments, _kinds
from turnout._documents import rational
from turnout.accounting import batches, counts, integer_noise, noisy_sums, thresholded
from turnout.accounting import participation as sampled
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.shuffling import LocalRandomizer, Shuffled
from turnout.accounting.variation import VariationRatio
from turnout.errors import CorruptDataError, TurnoutError
from turnout.participation import Participation

#: The mechanisms that are described by their parameters alone.
_PLAIN: dict[str, Callable[..., Mechanism]] = {
    name: kind
    for module in (batches, counts, integer_noise, noisy_sums, sampled, thresholded)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Mechanism) and kind.__module__ == module.__name__
    if not name.startswith("_")
}


def mechanism_from_dict(description: Any) -> Mechanism:
    """Rebuild a mechanism from its description.

    Parameters
    ----------
    description
        The result of :meth:`Mechanism.to_dict`, possibly after a JSON round trip.

    Returns
    -------
    Mechanism
        An equal mechanism.

    Raises
    ------
    CorruptDataError
        If it does not describe a mechanism.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> mechanism_from_dict(LocalSampling(0.1, 1.0).to_dict())
    LocalSampling(sample_rate=0.1, noise_multiplier=1.0)
    """
    try:
        match description:
            case {"mechanism": "Shuffled", "oracle": oracle, "nodes": nodes, **rest}:
                taking_part = Participation.from_dict(rest.pop("participation", None))
                if not rest:
                    return Shuffled(_oracle(oracle), nodes, taking_part)
            case {"mechanism": str(name), **rest} if name in _PLAIN:
                parameters = {str(key): value for key, value in rest.items()}
                fields = {field.name for field in dataclasses.fields(_PLAIN[name])}  # type: ignore[arg-type]
                if set(parameters) == fields:
                    return _PLAIN[name](**parameters)
    except (TurnoutError, TypeError, ValueError, ZeroDivisionError) as error:
        raise CorruptDataError(f"not the description of a mechanism: {error}") from error
    raise CorruptDataError(f"not the description of a mechanism: {_arguments.shown(description)}")


def _oracle(description: Any) -> LocalRandomizer | VariationRatio:
    match description:
        case {"ratio": str(), "total_variation": str(), "blanket_ratio": str(), **rest} if set(
            rest
        ) <= {"blanket"}:
            return VariationRatio(**{key: rational(text) for key, text in description.items()})
    oracle: LocalRandomizer = _kinds.from_dict(description)
    return oracle
