"""What other packages have written down of a training, accounted for here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from turnout import _arguments
from turnout.accounting.batches import FixedSizeBatches, share_of
from turnout.accounting.composition import Composition
from turnout.accounting.mechanism import Mechanism, compose
from turnout.accounting.participation import GaussianMechanism, LocalSampling
from turnout.accounting.values import positive
from turnout.errors import InvalidTypeError, InvalidValueError

#: The layout of an accountant's state in Flower that is known.
_SCHEMA = 1


def from_opacus(history: Any) -> Composition:
    """Account for a training with Opacus.

    Parameters
    ----------
    history
        ``PrivacyEngine().accountant.history`` of any of its accountants (RDP, PRV, GDP): a list of
        ``(noise_multiplier, sample_rate, steps)``; or what ``accountant.state_dict()`` gives.
        Plain data: Opacus is not needed.

    Returns
    -------
    Composition
        The steps as Poisson sampling with Gaussian noise
        (:class:`~turnout.accounting.LocalSampling`), for one element added or removed. Its
        ``epsilon(delta)`` is a bound, as that of Opacus's PRV accountant, and lower than that of
        its RDP accountant; its GDP accountant gives an approximation that may be too small.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the history is empty or not of that form.

    Notes
    -----
    Opacus accounts as if batches were drawn by Poisson sampling. They are with
    ``make_private(poisson_sampling=True)``, the default. Without it they are
    :class:`~turnout.accounting.ShuffledBatches`.

    Examples
    --------
    >>> training = from_opacus([(1.1, 0.01, 500), (1.0, 0.01, 500)])
    >>> round(training.epsilon(1e-5), 2)
    1.68
    """
    given = history
    if isinstance(history, Mapping):
        if "history" not in history:
            raise InvalidValueError(
                "history must be a list, or a state with the key 'history', got a state with "
                f"{_arguments.shown(sorted(map(str, history)))}"
            )
        given = history["history"]
    parts: list[tuple[Mechanism, int]] = []
    for place, entry in enumerate(_arguments.items("history", given, "a list of triples")):
        if not isinstance(entry, (tuple, list)) or len(entry) != 3:
            raise _arguments.mistyped(
                f"history[{place}] must be (noise_multiplier, sample_rate, steps)", entry
            )
        noise, sample_rate, steps = entry
        with _named(f"history[{place}]"):
            count = _arguments.integer("steps", steps, least=1, most=10**9)
            parts.append((LocalSampling(sample_rate, noise), count))
    if not parts:
        raise InvalidValueError("history must hold at least one step, got none")
    return compose(parts, "add_or_remove")


def from_flower(state: Any) -> Composition:
    """Account for a training with Flower that an accountant of Flower has followed.

    Parameters
    ----------
    state
        What ``accountant.state_dict()`` gives (Flower 1.41), also through JSON. Plain
        data: Flower is not needed.

    Returns
    -------
    Composition
        Of the rounds, for one client: ``"poisson"`` as :class:`~turnout.accounting.LocalSampling`,
        for one client added or removed; ``"without-replacement"`` as
        :class:`~turnout.accounting.FixedSizeBatches`, for one client that is replaced;
        ``"no-amplification"`` as :class:`~turnout.accounting.GaussianMechanism`, for one client
        added or removed.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the state is not of that form, or has no rounds.

    Notes
    -----
    Noise multipliers are those of Flower's strategies: the noise on the sum over the *clipping
    norm*. Flower calls a fixed number of clients, so that one that is gone makes room for another:
    the sum may change by two norms. Flower's accountant takes one for granted in both
    ``"without-replacement"`` and ``"no-amplification"``, and says too little; here it is two in
    both. The sums are those of equal weights: with the default weights of ``FedAvg``, numbers of
    examples that clients state, no noise multiplier has a meaning.

    Examples
    --------
    >>> training = from_flower({
    ...     "schema_version": 1, "backend": "rdp", "orders": [2.0],
    ...     "config": {"target_delta": 1e-5, "population_size": 1000, "max_epsilon": None,
    ...                "neighboring_relation": "replace-one",
    ...                "sampling_method": "without-replacement"},
    ...     "compositions": [{"count": 100, "event": {
    ...         "noise_multiplier": 2.0, "sample_size": 10, "population_size": 1000}}],
    ... })
    >>> training.parts
    ((FixedSizeBatches(batch_size=10, records=1000, noise_multiplier=2.0), 100),)
    """
    _arguments.instance("state", state, Mapping, "what state_dict() of an accountant gives")
    if state.get("schema_version") != _SCHEMA:
        raise _arguments.invalid(
            f"state must have the schema_version {_SCHEMA}", state.get("schema_version")
        )
    config = _mapping(state, "config", "state")
    method: Any = config.get("sampling_method")
    _arguments.choice("state['config']['sampling_method']", method, _METHODS)
    listed = _arguments.items(
        "state['compositions']", state.get("compositions"), "a list of rounds"
    )
    parts = []
    for place, entry in enumerate(listed):
        name = f"state['compositions'][{place}]"
        _arguments.instance(name, entry, Mapping, "an event and a count")
        event = _mapping(entry, "event", name)
        with _named(name):
            count = _arguments.integer("count", entry.get("count"), least=1, most=10**9)
            clients, population = (
                _arguments.integer(key, event.get(key), least=1, most=10**10)
                for key in ("sample_size", "population_size")
            )
            noise = positive("noise_multiplier", event.get("noise_multiplier"))
            parts.append((_round(method, clients, population, noise), count))
    if not parts:
        raise InvalidValueError("state['compositions'] must hold at least one round, got none")
    return compose(parts, _METHODS[method])


#: How clients are called, and for which neighbours that is accounted.
_METHODS = {
    "poisson": "add_or_remove",
    "without-replacement": "replace",
    "no-amplification": "add_or_remove",
}


def _round(method: str, clients: int, population: int, noise: float) -> Mechanism:
    if clients > population:
        raise InvalidValueError(
            f"sample_size must be at most the population_size {population}, got {clients}"
        )
    if method == "poisson":
        return LocalSampling(share_of(clients, population), noise)
    if method == "without-replacement" and clients < population:
        return FixedSizeBatches(clients, population, noise)
    return GaussianMechanism(0.5 * noise)


def _mapping(given: Any, key: str, name: str) -> Any:
    return _arguments.instance(f"{name}[{key!r}]", given.get(key), Mapping, "a dictionary")


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Say in an error where it is."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"{name}: {error}") from error
