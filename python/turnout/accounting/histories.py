"""Accounting for trainings with other packages: Opacus and Flower."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from turnout import _arguments
from turnout._rounding import rounded_down
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
        A ``PrivacyEngine`` of Opacus, or any of its accountants (RDP, PRV, GDP). Or their records:
        ``accountant.history``, a list of ``(noise_multiplier, sample_rate, steps)``, or
        ``accountant.state_dict()``. These are plain data, for which Opacus is not needed.

    Returns
    -------
    Composition
        The steps as Poisson sampling with Gaussian noise
        (:class:`~turnout.accounting.LocalSampling`), for one element added or removed. Its
        ``epsilon(delta)`` is a bound, like that of Opacus's PRV accountant, and lower than that of
        its RDP accountant. Opacus's GDP accountant gives an approximation that may be too small.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the history is empty or not of that form.

    Notes
    -----
    Opacus accounts as if batches were drawn by Poisson sampling. This is true with
    ``make_private(poisson_sampling=True)``, the default. Otherwise use
    :class:`~turnout.accounting.ShuffledBatches`.

    Examples
    --------
    >>> training = from_opacus([(1.1, 0.01, 500), (1.0, 0.01, 500)])
    >>> round(training.epsilon(1e-5), 2)
    1.68
    """
    # An engine has an accountant, and an accountant a history.
    given = getattr(history, "accountant", history)
    given = getattr(given, "history", given)
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


def from_flower(
    state: Any, *, clients: int | None = None, replies: Sequence[int] | None = None
) -> Composition:
    """Account for a training with one of Flower's strategies for differential privacy.

    Parameters
    ----------
    state
        The result of ``accountant.state_dict()`` (Flower 1.41), also after a JSON round trip: plain
        data, for which Flower is not needed. Or, for a training without an accountant, the
        strategy: ``DifferentialPrivacyServerSideFixedClipping``,
        ``DifferentialPrivacyClientSideFixedClipping``, or one of the two with ``AdaptiveClipping``.
    clients
        For a strategy: the number of connected clients from which each round's clients were drawn.
        If it varied, the smallest.
    replies
        For a strategy: the number of updates that were averaged in each round. Omit it for a state.

    Returns
    -------
    Composition
        The composition of the rounds, for one client: ``"poisson"`` as
        :class:`~turnout.accounting.LocalSampling`, for one client added or removed;
        ``"without-replacement"`` as :class:`~turnout.accounting.FixedSizeBatches`, for one client
        that is replaced; ``"no-amplification"`` as :class:`~turnout.accounting.GaussianMechanism`,
        for one client added or removed.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the state does not have that form, or has no rounds, or ``clients`` and ``replies`` do
        not fit it.

    Notes
    -----
    Noise multipliers are those of Flower's strategies: the noise on the sum over the *clipping
    norm*. Flower calls a fixed number of clients, so an absent client makes room for another: the
    sum may change by two norms. Flower's accountant assumes one norm in both
    ``"without-replacement"`` and ``"no-amplification"``, and so computes too small a loss. Here it
    is two norms in both. The sums have equal weights. With the default weights of ``FedAvg``, the
    numbers of examples that clients state, a noise multiplier has no meaning.

    A strategy scales its noise for ``num_sampled_clients`` replies and averages those that arrived.
    If fewer arrived, the noise is smaller relative to each reply, and the accounting uses this
    smaller noise. For adaptive clipping, the published noisy count of clipped updates is accounted
    for together with the model.

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

    An example with a strategy (here a stand-in for Flower's), where half of the clients did not
    answer in one round:

    >>> from types import SimpleNamespace
    >>> strategy = SimpleNamespace(noise_multiplier=2.0, num_sampled_clients=10)
    >>> training = from_flower(strategy, clients=1000, replies=[10] * 99 + [5])
    >>> [(part.noise_multiplier, rounds) for part, rounds in training.parts]
    [(2.0, 99), (1.0, 1)]
    """
    if hasattr(state, "num_sampled_clients"):
        return _of_strategy(state, clients, replies)
    for name, value in (("clients", clients), ("replies", replies)):
        if value is not None:
            raise _arguments.invalid(
                f"{name} must be left out with the state of an accountant", value
            )
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


def _of_strategy(strategy: Any, clients: Any, replies: Any) -> Composition:
    """Account for the rounds of a strategy, by what it does to the sum of updates."""
    if clients is None or replies is None:
        raise InvalidValueError(
            "clients and replies must be given for a strategy: from how many clients a round's "
            "were drawn, and how many updates were averaged in each round"
        )
    asked = _arguments.integer(
        "num_sampled_clients", strategy.num_sampled_clients, least=1, most=10**10
    )
    population = _arguments.integer("clients", clients, least=asked, most=10**10)
    listed = _arguments.items("replies", replies, "a number of updates for each round")
    counts = Counter(
        _arguments.integer(f"replies[{place}]", count, least=0, most=asked)
        for place, count in enumerate(listed)
    )
    # A round without replies releases nothing.
    parts = [
        (
            _round("without-replacement", asked, population, _noise_of(strategy, asked, count)),
            rounds,
        )
        for count, rounds in sorted(counts.items(), reverse=True)
        if count
    ]
    if not parts:
        raise InvalidValueError("replies must hold at least one round with an update, got none")
    return compose(parts, _METHODS["without-replacement"])


def _noise_of(strategy: Any, asked: int, came: int) -> float:
    """Return the noise multiplier of a round, of model and count together, rounded down."""
    noise = Fraction(positive("noise_multiplier", strategy.noise_multiplier))
    # The noise on the mean is noise * clip / asked, and an update weighs 1 / came.
    found = noise * came / asked
    deviation = getattr(strategy, "clipped_count_stddev", None)
    if deviation is None:
        return rounded_down(found)
    # A replaced update moves the mean by two clips and the count by one.
    count = 2 * Fraction(positive("clipped_count_stddev", deviation))
    squared = 1 / (1 / found**2 + 1 / count**2)
    root = math.sqrt(rounded_down(squared))
    while Fraction(root) ** 2 > squared:
        root = math.nextafter(root, 0.0)
    return root


def _mapping(given: Any, key: str, name: str) -> Any:
    return _arguments.instance(f"{name}[{key!r}]", given.get(key), Mapping, "a dictionary")


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the position to an error."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"{name}: {error}") from error
