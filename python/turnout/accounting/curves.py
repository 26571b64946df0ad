"""Texts and curves for pictures of mechanisms: names, common parameters, the paper's curve."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._search import least_at_most
from turnout._types import Floats
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.paper import theorem_4_1_delta
from turnout.accounting.participation import RandomParticipation
from turnout.errors import InvalidValueError

Mechanisms = Mechanism | Sequence[Mechanism] | Mapping[str, Mechanism]

_KINDS = {
    "CentralShuffling": "central shuffling (not a guarantee)",
    "CountSampling": "sampled counts",
    "DiscreteGaussianNoise": "discrete Gaussian noise",
    "DiscreteLaplaceNoise": "discrete Laplace noise",
    "FixedSizeBatches": "batches of a fixed size",
    "GaussianMechanism": "Gaussian noise",
    "LocalSampling": "only local sampling",
    "NoisySums": "sums with noise",
    "RandomCheckIns": "random check-ins",
    "RandomParticipation": "random participation",
    "SampleAndThreshold": "sampled counts above a threshold",
    "Shuffled": "shuffled reports",
    "ShuffledBatches": "shuffled batches",
    "SkellamNoise": "Skellam noise",
    "WeakClientSampling": "weak client sampling",
}

#: The papers' letters.
_SYMBOLS = {
    "client_rate": "p",
    "sample_rate": "q",
    "local_size": "d",
    "noise_multiplier": "σ",
    "nodes": "n",
}

#: The relative width at which a search for a point of the paper's curve ends.
_WIDTH = 1e-5

#: Beyond these the paper's formula is not evaluated.
_LARGEST_EPSILON = 1000.0
_LARGEST_LOCAL_SIZE = 10**6


def kind_of(mechanism: Mechanism) -> str:
    """Return the kind of a mechanism in words.

    Examples
    --------
    >>> kind_of(RandomParticipation(0.1, 0.1, 30, 1.0))
    'random participation'
    """
    name = type(mechanism).__name__
    return _KINDS.get(name, name)


def neighbours(word: str) -> str:
    """Return an adjacency in words.

    Examples
    --------
    >>> neighbours("add_or_remove")
    'add or remove one'
    """
    return f"{word.replace('_', ' ')} one"


def named(mechanisms: Mechanisms, labels: Sequence[str] | None) -> list[tuple[str, Mechanism]]:
    """Return a name for every mechanism; names of one kind give the differing parameters.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an entry is not a mechanism or a label is not text, there are no mechanisms, or the
        numbers differ.

    Examples
    --------
    >>> small, large = (RandomParticipation(0.1, 0.1, size, 1.0) for size in (1, 10))
    >>> [name for name, _ in named([small, large], None)]
    ['random participation, d = 1', 'random participation, d = 10']
    """
    expected = "a mechanism, a sequence of mechanisms, or a dict of labels and mechanisms"
    if isinstance(mechanisms, Mechanism):
        given: list[Any] = [mechanisms]
    elif isinstance(mechanisms, Mapping):
        given = list(mechanisms.values())
        labels = list(mechanisms) if labels is None else labels
    else:
        given = _arguments.items("mechanisms", mechanisms, expected)
    if not given:
        raise InvalidValueError(f"mechanisms must be {expected}, got none")
    for entry in given:
        _arguments.instance("mechanisms", entry, Mechanism, expected)
    if labels is None:
        return [(_name(mechanism, given), mechanism) for mechanism in given]
    texts = _arguments.items("labels", labels, "one text for each mechanism")
    if len(texts) != len(given) or not all(isinstance(text, str) for text in texts):
        raise _arguments.invalid(
            f"labels must be one text for each of the {len(given)} mechanisms", labels
        )
    return list(zip(texts, given, strict=True))


def _name(mechanism: Mechanism, among: Collection[Mechanism]) -> str:
    same = [other for other in among if type(other) is type(mechanism)]
    differing = [
        f"{_SYMBOLS.get(name, name)} = {_value(value)}"
        for name, value in _parameters(mechanism).items()
        if any(_parameters(other)[name] != value for other in same)
    ]
    return ", ".join([kind_of(mechanism), *differing])


def common_parameters(mechanisms: Collection[Mechanism], varied: Collection[str]) -> str:
    """Write the papers' parameters that are common to all mechanisms with them.

    Examples
    --------
    >>> common_parameters([RandomParticipation(0.1, 0.2, size, 1.0) for size in (1, 10)], ())
    'p = 0.1, q = 0.2, σ = 1'
    """
    found = []
    for name, symbol in _SYMBOLS.items():
        known = [_parameters(mechanism) for mechanism in mechanisms]
        values = {parameters[name] for parameters in known if name in parameters}
        if name not in varied and len(values) == 1:
            found.append(f"{symbol} = {_value(values.pop())}")
    return ", ".join(found)


def _parameters(mechanism: Any) -> dict[str, Any]:
    return {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else _arguments.shown(value)


def theorem(mechanism: Mechanism, wanted: str, given: npt.ArrayLike) -> Floats:
    """Evaluate the paper's claim for random participation; nan where there is no claim.

    ``wanted`` is ``"delta"``, at epsilons, or ``"epsilon"``, at one delta.
    """
    level = np.asarray(given, np.float64)
    if (
        not isinstance(mechanism, RandomParticipation)
        or min(mechanism.client_rate, mechanism.sample_rate) <= 0.0
        or mechanism.local_size > _LARGEST_LOCAL_SIZE
    ):
        return np.full(level.shape, np.nan)
    rates = mechanism.client_rate, mechanism.sample_rate
    parameters = *rates, mechanism.local_size, mechanism.noise_multiplier
    if wanted == "delta":
        return np.asarray(theorem_4_1_delta(level, *parameters))

    def claim(epsilon: float) -> float:
        return float(theorem_4_1_delta(epsilon, *parameters))

    if claim(0.0) <= level:
        return np.array(0.0)
    return np.array(least_at_most(claim, float(level), most=_LARGEST_EPSILON, width=_WIDTH))


def refuse_without(mechanisms: Collection[Mechanism], parameter: str) -> None:
    """Refuse mechanisms that lack a parameter.

    Raises
    ------
    InvalidTypeError
        If a mechanism lacks it.
    """
    for mechanism in mechanisms:
        if parameter not in _parameters(mechanism):
            raise _arguments.mistyped(f"mechanisms must have a {parameter}", mechanism)
