"""The plan of a training: its public parameters, the cost of a round, and what is protected."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from turnout import _arguments
from turnout._documents import check_version, digest
from turnout._rounding import rounded_down, rounded_up
from turnout._types import Self
from turnout._values import rebuilt, settle
from turnout.accounting import (
    Mechanism,
    PrivacyLedger,
    RandomParticipation,
    WeakClientSampling,
    calibrate_noise,
)
from turnout.accounting.guarantee import Guarantee
from turnout.errors import CorruptDataError, InvalidValueError, TurnoutError
from turnout.federated.clipping import AdaptiveClipping, Votes, checked_clip, covered
from turnout.federated.grid import Grid
from turnout.federated.secure_sum import SecureSum, check_secure_sum
from turnout.federated.trust import MODES, trusted

NOISES = ("exact", "float", "none")
UNITS = ("element", "client")

_FORMAT, _VERSION = "turnout-federated-plan", 1
_LARGEST_LOCAL_SIZE = 10**10

#: What differs between neighbouring data sets, by unit.
_CHANGES = {
    "element": "one element of one client is there or not",
    "client": "one client has all of its elements or none",
}

#: More than that is no rounding.
_MOST_SLACK = 1e3


@dataclass(frozen=True, repr=False)
class RandomParticipationSGD:
    """Private stochastic gradient descent in which clients and their elements take part at random.

    In every round each available client decides for itself to take part, with probability
    ``client_rate``. A client that takes part samples each of its elements with probability
    ``sample_rate``, clips the gradient of each and sends their sum. Gaussian noise is added, and
    the total is scaled by public constants only. An object of this class holds the public
    parameters; :class:`~turnout.federated.Client` and :class:`~turnout.federated.Server` are the
    two halves, and :class:`~turnout.federated.InProcessEngine` runs both in one process.

    The guarantee protects one element of one client (add or remove), or everything that a client
    has, as ``unit`` says. It holds against everybody who sees the models; ``mode`` says what the
    server may see.

    Parameters
    ----------
    client_rate
        The probability p that an available client takes part, in (0, 1].
    sample_rate
        The probability q that an element of such a client is sampled, in (0, 1].
    clip
        The L2 norm that the gradient of each example is clipped to, finite and above 0. Infinity is
        allowed where there is no noise.
    noise_multiplier
        The standard deviation of the noise divided by ``clip``. Pass either this or a target.
    epsilon, delta, rounds
        The target for the whole training. The plan takes the least noise that reaches it over this
        many rounds; clients and server get ledgers with this budget.
    local_size
        A public upper bound d of the number of elements of every client. Without it the accounting
        is weak client sampling, which needs no bound. The accounting uses it as its own
        ``local_size``, which counts the elements beside the protected one: that is one more than
        needed, on the safe side.
    nominal_local_size
        The public number that scales the sum in place of the clients' true sizes; ``local_size`` if
        None. It has no influence on privacy.
    unit
        What is protected. ``"element"``: one element of one client; the gradient of each is
        clipped. ``"client"``: all elements of one client together. The mean of a client's gradients
        is clipped as a whole, even if it comes from several local steps (see
        :func:`~turnout.federated.local_steps`). Each client has the same weight. With this unit a
        client may have any number of elements: ``local_size`` and ``nominal_local_size`` are None,
        and ``sample_rate`` has no influence on privacy.
    mode
        Who is trusted. ``"trusted_server"``: the server sees the sums of the clients that take part
        and adds the noise once. ``"always_send"``: the server is not trusted. Every available
        client sends its sum with noise of its own, or noise alone if it does not take part.
        ``"participants_only"``: the server is not trusted, and only clients that take part send,
        with noise of their own. The server sees which clients do, so the accounting is weak client
        sampling.
    noise
        ``"exact"``: see :class:`~turnout.federated.grid.Grid`. ``"float"``: NumPy's generator in
        floating point, whose low bits may reveal what the noise should hide (Mironov 2012).
        ``"none"``: no noise and no privacy, for comparisons.
    grid_bits
        An integer from 8 to 36: the standard deviation of exact noise is 2^grid_bits steps.
    batch_slack
        How much one element may change the sum beside its own clipped gradient, in units of the
        clip. It can, because the gradients of others come out in other bits in another batch. The
        accounting is then for ``1 + batch_slack`` times the clip. Pass 0 where gradients do not
        depend on the batch: see :func:`~turnout.federated.one_at_a_time` and
        :doc:`/topics/federated`.
    adaptive_clipping
        An :class:`~turnout.federated.AdaptiveClipping` whose quantile the clip follows, starting at
        ``clip`` in the first round; None for a fixed clip.
    secure_sum
        A :class:`~turnout.federated.SecureSum` if an untrusted server sees only sums of updates:
        then all senders together add the noise of a round. None if it sees single updates.
    seed
        For studies only: it makes every draw the same on every run, in every engine. Anybody who
        knows it can remove the noise.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or arguments do not fit together.

    Notes
    -----
    Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated Learning",
    Algorithm 1 and section 5.5; their Theorem 4.1 is not an upper bound, so the sound bound of
    :class:`turnout.accounting.RandomParticipation` is used. Whether a client is available must not
    depend on its data. Availability is not part of the accounting: a client pays for every round in
    which it draws, and for no other.

    Examples
    --------
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.001, 0.1, clip=1.0, noise_multiplier=2.4903, local_size=30
    ... )
    >>> plan.mechanism.delta(0.015) <= 1e-6
    True
    >>> round(plan._scale(available=20_000), 4)
    0.0167
    """

    #: The probability p that an available client takes part.
    client_rate: float
    #: The probability q that an element of a participating client is sampled.
    sample_rate: float
    #: The norm that the gradient of each example is clipped to.
    clip: float
    _: KW_ONLY
    #: The standard deviation of the noise over the clipping norm; 0 without noise.
    noise_multiplier: float | None = None
    #: What the noise was calibrated for, if it was.
    epsilon: float | None = None
    delta: float | None = None
    rounds: int | None = None
    #: The public bound on a client's number of elements, if there is one.
    local_size: int | None = None
    #: The public number of elements that the sum is scaled by, if it is not ``local_size``.
    nominal_local_size: int | None = None
    #: What is protected: an element, or all that a client has.
    unit: str = "element"
    #: Who is trusted.
    mode: str = "trusted_server"
    #: How noise is drawn.
    noise: str = "exact"
    #: The logarithm of the standard deviation of exact noise in steps of the grid.
    grid_bits: int = 24
    #: What one element may change beside its own gradient, in units of the clip.
    batch_slack: float = 0.0
    #: What the clip follows, if it moves.
    adaptive_clipping: AdaptiveClipping | None = None
    #: How many updates a sum is made of, if the server sees sums only.
    secure_sum: SecureSum | None = None
    #: The seed of a study, or None.
    seed: int | None = None
    #: The grid of exact noise, in the first round if the clip moves; None without it.
    grid: Grid | None = field(init=False, compare=False)
    _votes: Votes | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _arguments.choice("noise", self.noise, NOISES)
        _arguments.choice("unit", self.unit, UNITS)
        self._check_sizes()
        _arguments.choice("mode", self.mode, MODES)
        expected = "an AdaptiveClipping or None"
        _arguments.instance(
            "adaptive_clipping", self.adaptive_clipping, (AdaptiveClipping, type(None)), expected
        )
        check_secure_sum(self.secure_sum, self.mode, self.noise)
        slack = _arguments.number("batch_slack", self.batch_slack)
        if not 0.0 <= slack <= _MOST_SLACK:
            raise _arguments.invalid(f"batch_slack must be from 0 to {_MOST_SLACK:g}", slack)
        settle(
            self,
            client_rate=_arguments.probability("client_rate", self.client_rate),
            sample_rate=_arguments.probability("sample_rate", self.sample_rate),
            clip=checked_clip(self.clip, self.noise),
            local_size=_size("local_size", self.local_size),
            nominal_local_size=_size("nominal_local_size", self.nominal_local_size),
            grid_bits=_arguments.integer("grid_bits", self.grid_bits, least=8, most=36),
            batch_slack=slack,
            seed=_arguments.seed(self.seed),
        )
        self._settle_target(self.epsilon, self.delta, self.rounds)
        multiplier = self._chosen(self.noise_multiplier)
        settle(self, noise_multiplier=multiplier, grid=None, _votes=self._voting(multiplier))
        settle(self, grid=self._grid_at(self.clip))
        if self.grid is not None:
            self.grid.check_examples("local_size", self._most_examples or 1)

    def _check_sizes(self) -> None:
        sizes = {name: getattr(self, name) for name in ("local_size", "nominal_local_size")}
        given = [name for name, size in sizes.items() if size is not None]
        if self.unit == "element" and not given:
            raise InvalidValueError(
                "nominal_local_size must be given where local_size is None: the sum is "
                "scaled by a public number of elements for each client"
            )
        if self.unit == "client" and given:
            raise _arguments.invalid(
                f"{given[0]} must be left out with unit = 'client', which protects and weighs a "
                "client as a whole, however many elements it has",
                sizes[given[0]],
            )

    def _voting(self, multiplier: float) -> Votes | None:
        adaptive = self.adaptive_clipping
        if adaptive is None:
            return None
        if self.noise == "float" or math.isinf(self.clip):
            raise InvalidValueError(
                "adaptive_clipping must be None with noise='float' or an infinite clip"
            )
        bits = self.grid_bits if self.noise == "exact" else None
        return Votes.of(adaptive, self._own(multiplier), bits)

    def _grid_at(self, clip: float) -> Grid | None:
        """Return the grid of a round with this clip: all grids have the same noise in steps."""
        if self.noise != "exact" or (clip == self.clip and self.grid is not None):
            return self.grid
        return Grid.of(clip, self._own(self._gradient_noise), self.grid_bits)

    def _own(self, multiplier: float) -> float:
        """Return the noise multiplier of whoever adds noise, from that of the accounting."""
        return multiplier if self.secure_sum is None else self.secure_sum._share(multiplier)

    @functools.cached_property
    def _gradient_noise(self) -> float:
        """The noise multiplier of the gradients: that of the accounting, unless there are votes."""
        multiplier = float(self.noise_multiplier or 0.0)
        adaptive = self.adaptive_clipping
        return multiplier if adaptive is None else adaptive._gradient_noise(multiplier)

    @property
    def _most_examples(self) -> int | None:
        """The most clipped gradients that a client adds up; None if nothing bounds them."""
        return 1 if self.unit == "client" else self.local_size

    def _settle_target(self, epsilon: Any, delta: Any, rounds: Any) -> None:
        """Check the target that the noise is calibrated for: all of it is given, or nothing."""
        given = (epsilon, delta, rounds)
        if all(value is None for value in given):
            return
        if any(value is None for value in given):
            raise _arguments.invalid("epsilon, delta and rounds must be given together", given)
        budget = PrivacyLedger(epsilon, delta)
        count = _arguments.integer("rounds", rounds, least=1, most=10**9)
        settle(self, epsilon=budget.epsilon, delta=budget.delta, rounds=count)

    @property
    def target(self) -> tuple[float, float, int] | None:
        """The epsilon, delta and rounds that the noise is calibrated for; None without a target."""
        if self.epsilon is None or self.delta is None or self.rounds is None:
            return None
        return self.epsilon, self.delta, self.rounds

    def _chosen(self, given: float | None) -> float:
        """Return the noise multiplier, calibrated if a target was given."""
        if self.noise == "none":
            if given is not None or self.target is not None:
                raise InvalidValueError(
                    "noise = 'none' gives no privacy: leave out noise_multiplier, epsilon, delta "
                    "and rounds"
                )
            return 0.0
        if (given is None) == (self.target is None):
            raise InvalidValueError(
                "give either noise_multiplier or all of epsilon, delta and rounds, got "
                f"noise_multiplier = {_arguments.shown(given)} and "
                f"(epsilon, delta, rounds) = {_arguments.shown(self.target)}"
            )
        if self.target is not None:
            found = Fraction(calibrate_noise(self._accounted(1.0), *self.target))
            return rounded_up(found * self._covered)
        value = _arguments.number("noise_multiplier", given)
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidValueError(
                "noise_multiplier must be finite and above 0 (for no noise at all, say "
                f"noise='none'), got {_arguments.shown(given)}"
            )
        return value

    def _accounted(self, noise_multiplier: float) -> Mechanism:
        # A client as a whole is one element that is always sampled and has no others beside it.
        rate = 1.0 if self.unit == "client" else self.sample_rate
        beside = 0 if self.unit == "client" else self.local_size
        if beside is None or self.mode == "participants_only":
            return WeakClientSampling(self.client_rate, rate, noise_multiplier)
        return RandomParticipation(self.client_rate, rate, beside, noise_multiplier)

    @property
    def _deviation(self) -> float:
        """The standard deviation of the noise; 0 without noise."""
        return self._gradient_noise * self.clip

    @property
    def mechanism(self) -> Mechanism | None:
        """The cost of one round for a client that is available; None if there is no noise."""
        if self.noise == "none":
            return None
        # Noise against what one element can change: its own gradient, and those of others.
        return self._accounted(rounded_down(Fraction(self.noise_multiplier or 0) / self._covered))

    @property
    def _covered(self) -> Fraction:
        return covered(self.batch_slack, self.adaptive_clipping)

    @functools.cached_property
    def guarantee(self) -> Guarantee | None:
        """What the training protects, against whom, and on which assumptions; None without noise.

        Its epsilon is that of the target, or the true epsilon of the plan's noise if this is
        larger, because a plan that was read from a description may promise anything.
        """
        mechanism = self.mechanism
        if mechanism is None:
            return None
        found = Guarantee(
            mechanism,
            "add_or_remove",
            None,
            None,
            tuple(self._assumptions()),
            change=_CHANGES[self.unit],
        )
        if self.target is None:
            return found
        epsilon, delta, rounds = self.target
        spent = mechanism.compose(rounds)
        if spent.delta(epsilon) > delta:
            epsilon = max(epsilon, spent.epsilon(delta))
        return replace(found, epsilon=epsilon, delta=delta, rounds=rounds)

    def _assumptions(self) -> Iterator[str]:
        """Return the assumptions of the guarantee, a sentence each."""
        yield from trusted(self.mode, self.secure_sum, self._own(self._gradient_noise))
        if isinstance(self.mechanism, RandomParticipation) and self.unit == "element":
            more = "element" if self.local_size == 1 else "elements"
            yield f"no client has more than {self.local_size} {more}"
        yield "whether a client is available does not depend on its data"
        if self.batch_slack:
            yield (
                f"one {self.unit} changes the gradients of all others together by at most "
                f"{self.batch_slack:g} times the clip"
            )
        elif self.unit == "element":
            yield "the gradient of an element depends, to the last bit, on it and the model alone"
        else:
            yield "what a client computes depends, to the last bit, on its data and the model alone"
        yield "nothing else that depends on the data is shown: no loss, no count, no error"
        if self.target is None:
            yield "every round that is opened is paid, also one that is given up"
        else:
            yield f"at most {self.target[2]} rounds are opened, those that are given up included"
        if self.noise == "float":
            yield "nobody uses the low bits of the noise, which is drawn in floating point"
        if self.seed is not None:
            yield "nobody knows the seed, from which all noise follows"

    def _scale(self, available: int) -> float:
        """Return the factor of the noisy sum, 1 / (p N q d), made of public numbers only.

        Where a client is the unit it is 1 / (p N).

        Parameters
        ----------
        available
            The number N of clients that are available in the round; public.

        Returns
        -------
        float
            The factor that makes the sum an estimate of the mean gradient.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``available`` is not an integer of at least 1.
        """
        clients = _arguments.integer("available", available, least=1)
        if self.unit == "client":
            return 1.0 / (self.client_rate * clients)
        size = self.nominal_local_size or self.local_size or 1
        # In this order the divisor can neither overflow nor vanish.
        return 1.0 / (self.client_rate * clients) / (self.sample_rate * size)

    def ledger(self) -> PrivacyLedger | None:
        """Return a new ledger with the target as its budget; None if no target was given."""
        return None if self.target is None else PrivacyLedger(self.target[0], self.target[1])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the plan, for the server to send to its clients."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        if self.adaptive_clipping is not None:
            values["adaptive_clipping"] = self.adaptive_clipping._to_dict()
        if self.secure_sum is not None:
            values["secure_sum"] = self.secure_sum._to_dict()
        if math.isinf(self.clip):
            values["clip"] = None
        return {"format": _FORMAT, "version": _VERSION, **values}

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """Rebuild a plan from :meth:`to_dict`.

        The noise is taken from the description, not calibrated again. If you must rely on a target,
        spend :attr:`mechanism` from a ledger.

        Parameters
        ----------
        description
            The result of :meth:`to_dict`, possibly after a round trip through JSON.

        Returns
        -------
        RandomParticipationSGD
            A plan of this class, equal to the one that was described.

        Raises
        ------
        UnsupportedVersionError
            If the plan is of a version that this release does not read.
        CorruptDataError
            If the description is not that of a plan.
        """
        if not isinstance(description, Mapping) or description.get("format") != _FORMAT:
            raise CorruptDataError(
                f"not a plan of federated training: {_arguments.shown(description)}"
            )
        check_version("plan of federated training", description, _FORMAT, _VERSION)
        names = [each.name for each in fields(cls) if each.init]
        if description.keys() != {"format", "version", *names}:
            raise CorruptDataError(
                f"not a plan of federated training: expected the fields {', '.join(names)}, got "
                f"{_arguments.shown(list(description))}"
            )
        values = {name: description[name] for name in names}
        # With a target the noise would be looked for, which could take any time.
        target = [values.pop(name) for name in ("epsilon", "delta", "rounds")]
        if values["clip"] is None:
            values["clip"] = math.inf
        if values["noise"] == "none":
            values["noise_multiplier"] = None
        try:
            for name, kind in (("adaptive_clipping", AdaptiveClipping), ("secure_sum", SecureSum)):
                values[name] = rebuilt(name, kind, values[name])
            plan = cls(**values)
            plan._settle_target(*target)
        except (TurnoutError, TypeError) as error:
            raise CorruptDataError(f"not a plan of federated training: {error}") from error
        return plan

    @functools.cached_property
    def fingerprint(self) -> str:
        """A short text that identifies the plan: 32 hexadecimal digits of SHA-256."""
        return digest(self.to_dict())[:32]

    def __repr__(self) -> str:
        """Show the parameters that differ from plan to plan."""
        names = ["noise_multiplier", "local_size", "unit", "mode", "noise", "seed"]
        if self.secure_sum is not None:
            names.append("secure_sum")
        rest = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        rates = f"{self.client_rate!r}, {self.sample_rate!r}, {self.clip!r}"
        return f"{type(self).__name__}({rates}, {rest})"


def _size(argument: str, value: int | None) -> int | None:
    if value is None:
        return None
    return _arguments.integer(argument, value, least=1, most=_LARGEST_LOCAL_SIZE)
