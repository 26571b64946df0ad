"""The algorithm: its public parameters, what a round costs, and its client and server halves."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from turnout import _arguments
from turnout.accounting import (
    Mechanism,
    PrivacyLedger,
    RandomParticipation,
    WeakClientSampling,
    calibrate_noise,
)
from turnout.errors import CorruptDataError, InvalidValueError, TurnoutError
from turnout.federated import plan_encoding
from turnout.federated.grid import Grid

if TYPE_CHECKING:
    import os

    from turnout.federated.client import Client
    from turnout.federated.optimizers import Optimizer
    from turnout.federated.server import Server

__all__ = ["RandomParticipationSGD"]

MODES = ("trusted_server", "always_send", "participants_only")
NOISES = ("exact", "float", "none")

_LARGEST_LOCAL_SIZE = 10**10


class RandomParticipationSGD:
    """Private stochastic gradient descent in which clients and their elements take part at random.

    In every round each available client takes part with probability ``client_rate``, decided by
    itself; one that does samples each of its elements with probability ``sample_rate``, clips the
    gradient of each and sends their sum. Gaussian noise is added, and the total is scaled by public
    constants only. An object of this class holds the public parameters; :meth:`client` and
    :meth:`server` make the two halves, and :class:`~turnout.federated.InProcessEngine` runs both in
    one process.

    The guarantee is for one element of one client (add or remove), against everybody who sees the
    models; see ``mode`` for what the server may see.

    Parameters
    ----------
    client_rate
        The probability p that an available client takes part, in (0, 1].
    sample_rate
        The probability q that an element of such a client is sampled, in (0, 1].
    clip
        The L2 norm that the gradient of each example is clipped to, finite and above 0; infinity is
        taken where there is no noise.
    noise_multiplier
        The standard deviation of the noise over ``clip``. Either this or a target must be given.
    epsilon, delta, rounds
        The target for the whole training: the least noise that reaches it over this many rounds is
        used, and halves get ledgers with this budget.
    local_size_bound
        A public number d that no client has more elements than. Without one the accounting is weak
        client sampling, which needs none. The accounting takes it for its ``local_size``, which
        counts the elements beside the protected one: by one on the safe side.
    nominal_local_size
        The public number that the sum is scaled by in place of the clients' true sizes;
        ``local_size_bound`` if None. It has no influence on privacy.
    mode
        Who is trusted. ``"trusted_server"``: the server sees the sums of those who take part and
        adds the noise once. ``"always_send"``: the server is not trusted, and every available
        client sends its sum with noise of its own, or noise alone if it does not take part.
        ``"participants_only"``: the server is not trusted and only those who take part send, with
        noise of their own; it sees who does, so that the accounting is weak client sampling.
    noise
        ``"exact"``: see :class:`~turnout.federated.Grid`. ``"float"``: NumPy's generator in
        floating point, whose low bits may tell what the noise should hide (Mironov 2012).
        ``"none"``: no noise and no privacy, for comparisons.
    grid_bits
        The standard deviation of exact noise is 2^grid_bits steps, from 8 to 36.
    seed
        For studies only: makes every draw the same on every run, in every engine, and anybody who
        knows it can take the noise away.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or arguments do not fit together.

    Notes
    -----
    Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated Learning",
    Algorithm 1 and section 5.5; their Theorem 4.1 is no upper bound, and the sound one of
    :class:`turnout.accounting.RandomParticipation` is used. Whether a client is available must not
    depend on its data. Availability is not part of the accounting: a client pays for every round
    in which it draws, and for no other.

    Examples
    --------
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.001, 0.1, clip=1.0, noise_multiplier=2.4903, local_size_bound=30
    ... )
    >>> plan.mechanism.delta(0.015) <= 1e-6
    True
    >>> round(plan.scale(available=20_000), 4)
    0.0167
    """

    def __init__(
        self,
        client_rate: float,
        sample_rate: float,
        clip: float,
        *,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rounds: int | None = None,
        local_size_bound: int | None = None,
        nominal_local_size: int | None = None,
        mode: str = "trusted_server",
        noise: str = "exact",
        grid_bits: int = 24,
        seed: int | None = None,
    ) -> None:
        self._client_rate = _arguments.probability("client_rate", client_rate)
        self._sample_rate = _arguments.probability("sample_rate", sample_rate)
        self._mode = _arguments.choice("mode", mode, MODES)
        self._noise = _arguments.choice("noise", noise, NOISES)
        self._clip = _clip(clip, self._noise)
        self._local_size_bound = _size("local_size_bound", local_size_bound)
        self._nominal_local_size = _size("nominal_local_size", nominal_local_size)
        if local_size_bound is None and nominal_local_size is None:
            raise InvalidValueError(
                "nominal_local_size must be given where local_size_bound is None: the sum is "
                "scaled by a public number of elements for each client"
            )
        self._grid_bits = _arguments.integer("grid_bits", grid_bits, least=8, most=36)
        self._seed = _arguments.seed(seed)
        self._target = _target(epsilon, delta, rounds)
        self._noise_multiplier = self._chosen(noise_multiplier)
        self._grid = (
            Grid.of(self._clip, self._noise_multiplier, self._grid_bits)
            if self._noise == "exact"
            else None
        )
        if self._grid is not None and self._local_size_bound is not None:
            self._grid.check_examples("local_size_bound", self._local_size_bound)

    def _chosen(self, given: float | None) -> float:
        """Give the noise multiplier, calibrated if a target was given."""
        if self._noise == "none":
            if given is not None or self._target is not None:
                raise InvalidValueError(
                    "noise = 'none' gives no privacy: leave out noise_multiplier, epsilon, delta "
                    "and rounds"
                )
            return 0.0
        if (given is None) == (self._target is None):
            raise InvalidValueError(
                "give either noise_multiplier or all of epsilon, delta and rounds, got "
                f"noise_multiplier = {_arguments.shown(given)} and "
                f"(epsilon, delta, rounds) = {_arguments.shown(self._target)}"
            )
        if self._target is not None:
            return calibrate_noise(self._accounted(1.0), *self._target)
        value = _arguments.number("noise_multiplier", given)
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidValueError(
                "noise_multiplier must be finite and above 0 (for no noise at all, say "
                f"noise='none'), got {_arguments.shown(given)}"
            )
        return value

    def _accounted(self, noise_multiplier: float) -> Mechanism:
        if self._local_size_bound is None or self._mode == "participants_only":
            return WeakClientSampling(self._client_rate, self._sample_rate, noise_multiplier)
        return RandomParticipation(
            self._client_rate, self._sample_rate, self._local_size_bound, noise_multiplier
        )

    @property
    def client_rate(self) -> float:
        """The probability p that an available client takes part."""
        return self._client_rate

    @property
    def sample_rate(self) -> float:
        """The probability q that an element of a participating client is sampled."""
        return self._sample_rate

    @property
    def clip(self) -> float:
        """The norm that the gradient of each example is clipped to."""
        return self._clip

    @property
    def noise_multiplier(self) -> float:
        """The standard deviation of the noise over the clipping norm; 0 without noise."""
        return self._noise_multiplier

    @property
    def local_size_bound(self) -> int | None:
        """The public bound on a client's number of elements, if there is one."""
        return self._local_size_bound

    @property
    def nominal_local_size(self) -> int:
        """The public number of elements that the sum is scaled by."""
        chosen = self._nominal_local_size or self._local_size_bound
        assert chosen is not None
        return chosen

    @property
    def target(self) -> tuple[float, float, int] | None:
        """Epsilon, delta and rounds that the noise was calibrated for, if it was."""
        return self._target

    @property
    def mode(self) -> str:
        """Who is trusted."""
        return self._mode

    @property
    def noise(self) -> str:
        """How noise is drawn."""
        return self._noise

    @property
    def grid(self) -> Grid | None:
        """The grid of exact noise; None without it."""
        return self._grid

    @property
    def seed(self) -> int | None:
        """The seed of a study, or None."""
        return self._seed

    @property
    def mechanism(self) -> Mechanism | None:
        """What one round costs a client that is available; None if there is no noise."""
        return None if self._noise == "none" else self._accounted(self._noise_multiplier)

    def scale(self, available: int) -> float:
        """Give what the noisy sum is multiplied by: 1 / (p N q d), of public numbers only.

        Parameters
        ----------
        available
            How many clients are available in the round, N; public.

        Returns
        -------
        float
            The factor that makes the sum an estimate of the mean gradient.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``available`` is no integer of at least 1.
        """
        clients = _arguments.integer("available", available, least=1)
        # In this order the divisor can neither overflow nor vanish.
        return 1.0 / (self._client_rate * clients) / (self._sample_rate * self.nominal_local_size)

    def ledger(self) -> PrivacyLedger | None:
        """Make a new ledger with the target as its budget; None if no target was given."""
        return None if self._target is None else PrivacyLedger(self._target[0], self._target[1])

    def client(
        self,
        size: int,
        *,
        parameters: Any,
        index: int = 0,
        ledger: PrivacyLedger | None = None,
    ) -> Client:
        """Make the half of one client.

        Parameters
        ----------
        size
            How many elements it has, from 0 to ``local_size_bound``.
        parameters
            The model: a nest of arrays of its parameters, or how many there are.
        index
            Its number among the clients; matters in seeded studies only.
        ledger
            Its own ledger; one with the plan's target if None, or none if there is no target.

        Returns
        -------
        Client
            The half; see :class:`turnout.federated.Client`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or there is a ledger and no noise.
        """
        from turnout.federated.client import Client  # noqa: PLC0415 (it knows this class)

        return Client(self, size, parameters=parameters, index=index, ledger=ledger)

    def server(
        self,
        parameters: Any,
        optimizer: Optimizer,
        *,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> Server:
        """Make the half of the server.

        Parameters
        ----------
        parameters
            The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
        optimizer
            What makes a step of a gradient, such as :class:`~turnout.federated.SGD`.
        ledger
            The ledger of the whole training; one with the plan's target if None, or none if there
            is no target.
        checkpoint
            A file that the state is written to, see :meth:`turnout.federated.Server.resume`.
        checkpoint_every
            After how many rounds it is written.

        Returns
        -------
        Server
            The half; see :class:`turnout.federated.Server`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or there is a ledger and no noise.
        """
        from turnout.federated.server import Server  # noqa: PLC0415 (it knows this class)

        return Server(
            self,
            parameters,
            optimizer,
            ledger=ledger,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan in terms of JSON: what a server tells its clients."""
        return {
            "format": plan_encoding.FORMAT,
            "version": plan_encoding.VERSION,
            "client_rate": self._client_rate,
            "sample_rate": self._sample_rate,
            "clip": self._clip if math.isfinite(self._clip) else None,
            "noise_multiplier": self._noise_multiplier,
            "target": None if self._target is None else list(self._target),
            "local_size_bound": self._local_size_bound,
            "nominal_local_size": self._nominal_local_size,
            "mode": self._mode,
            "noise": self._noise,
            "grid_bits": self._grid_bits,
            "seed": self._seed,
        }

    @classmethod
    def from_dict(cls, description: Any) -> RandomParticipationSGD:
        """Rebuild a plan from :meth:`to_dict`.

        The noise is taken as it is described, not calibrated again: whoever must rely on a target
        spends :attr:`mechanism` from a ledger.

        Parameters
        ----------
        description
            What :meth:`to_dict` gave, perhaps through JSON.

        Returns
        -------
        RandomParticipationSGD
            Equal to the one that was described.

        Raises
        ------
        UnsupportedVersionError
            If it is a plan of a version that this release does not read.
        CorruptDataError
            If it is no plan.
        """
        values = plan_encoding.fields(description)
        target = values.pop("target")
        if values["clip"] is None:
            values["clip"] = math.inf
        if values["noise"] == "none":
            values["noise_multiplier"] = None
        try:
            plan = cls(**values)
            plan._target = None if target is None else _target(*target)
        except (TurnoutError, TypeError) as error:
            raise CorruptDataError(f"not a plan of federated training: {error}") from error
        return plan

    @functools.cached_property
    def fingerprint(self) -> str:
        """A short text that differs between plans: 32 hexadecimal digits of SHA-256."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        """Compare all parameters."""
        return isinstance(other, RandomParticipationSGD) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        """Show the parameters that differ from plan to plan."""
        shown = {
            "noise_multiplier": self._noise_multiplier,
            "local_size_bound": self._local_size_bound,
            "mode": self._mode,
            "noise": self._noise,
            "seed": self._seed,
        }
        rest = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return (
            f"RandomParticipationSGD({self._client_rate!r}, {self._sample_rate!r}, "
            f"{self._clip!r}, {rest})"
        )


def _clip(value: float, noise: str) -> float:
    clip = _arguments.number("clip", value)
    if not clip > 0.0 or (math.isinf(clip) and noise != "none"):
        wanted = "above 0" if noise == "none" else "finite and above 0"
        raise InvalidValueError(f"clip must be {wanted}, got {_arguments.shown(value)}")
    return clip


def _size(argument: str, value: int | None) -> int | None:
    if value is None:
        return None
    return _arguments.integer(argument, value, least=1, most=_LARGEST_LOCAL_SIZE)


def _target(epsilon: Any, delta: Any, rounds: Any) -> tuple[float, float, int] | None:
    given = (epsilon, delta, rounds)
    if all(value is None for value in given):
        return None
    if any(value is None for value in given):
        raise InvalidValueError(
            f"epsilon, delta and rounds must be given together, got {_arguments.shown(given)}"
        )
    budget = PrivacyLedger(epsilon, delta)
    return budget.epsilon, budget.delta, _arguments.integer("rounds", rounds, least=1, most=10**9)
