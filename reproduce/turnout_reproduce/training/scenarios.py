"""Who has how much data, the noise that each analysis requires, and the plan of each training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from turnout import _arguments
from turnout.accounting import (
    LocalSampling,
    Mechanism,
    RandomParticipation,
    WeakClientSampling,
    calibrate_noise,
    paper,
)
from turnout.federated import RandomParticipationSGD

#: Below this noise multiplier the paper's formula is not searched.
_LEAST_CLAIMED_NOISE = 0.05


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Who has how much data, and who takes part.

    Parameters
    ----------
    name
        A word for files and pictures.
    clients
        How many clients there are.
    local_size
        How many examples each has: also the public bound of the accounting.
    client_rate, sample_rate
        The probabilities that a client takes part and that it samples an example.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> Scenario("many clients", 2000, 30, client_rate=0.0117, sample_rate=0.1).average_batch
    70.2
    """

    name: str
    clients: int
    local_size: int
    client_rate: float
    sample_rate: float

    def __post_init__(self) -> None:
        _arguments.instance("name", self.name, str, "text")
        _arguments.integer("clients", self.clients, least=1)
        _arguments.integer("local_size", self.local_size, least=1)
        _arguments.probability("client_rate", self.client_rate)
        _arguments.probability("sample_rate", self.sample_rate)

    @property
    def average_batch(self) -> float:
        """How many examples are sampled in a round, in the mean."""
        examples = self.clients * self.local_size
        return round(examples * self.client_rate * self.sample_rate, 9)

    def pooled(self) -> Scenario:
        """Give the same data and batches in one place, where nobody takes part at random.

        Examples
        --------
        >>> Scenario("few", 60, 1000, client_rate=0.25, sample_rate=0.5).pooled()
        Scenario(name='few', clients=1, local_size=60000, client_rate=1.0, sample_rate=0.125)
        """
        return dataclasses.replace(
            self,
            clients=1,
            local_size=self.clients * self.local_size,
            client_rate=1.0,
            sample_rate=self.client_rate * self.sample_rate,
        )


#: What pictures and tables call each arm. The one that may be left out is last, so that the others
#: have the same colours in every picture.
_LABELS = {
    "none": "no privacy",
    "central": "central, as with Opacus",
    "sound": "random participation",
    "wcs": "weak client sampling",
    "ols": "only local sampling",
    "each": "each participant's noise",
    "every": "every client's noise",
    "unsound": "unsound: Theorem 4.1",
}


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to train: who is trusted, and how the noise is chosen.

    Parameters
    ----------
    name
        A word for files, such as ``"sound"``: see :func:`arms_of`.
    label
        What pictures and tables call it.
    noise_multiplier
        The standard deviation of the noise over the clipping norm; 0 for no noise and no clipping.
        Where clients add noise, that of one of them.
    learning_rate
        Of stochastic gradient descent.
    keeps_target
        Whether epsilon and delta are proven to be at most those of the study.
    """

    name: str
    label: str
    noise_multiplier: float
    learning_rate: float
    keeps_target: bool

    def placed(self, scenario: Scenario) -> Scenario:
        """Give who has the data in this arm: one party in the arm ``"central"``."""
        return _placed(self.name, scenario)

    def mechanism(self, scenario: Scenario) -> Mechanism:
        """Give the mechanism of a round that is proven for this arm and its noise."""
        proven = self.name if self.name in ("central", "each") else "sound"
        return _accounted(proven, self.placed(scenario), self.noise_multiplier)

    def plan(self, scenario: Scenario, clip: float, seed: int | None) -> RandomParticipationSGD:
        """Give the plan of a training, whose sum has the noise of this arm.

        Examples
        --------
        >>> scenario = Scenario("small", 100, 5, client_rate=0.5, sample_rate=0.5)
        >>> (arm,) = arms_of(scenario, 1.0, 1e-6, {"every": 0.1})
        >>> round(arm.noise_multiplier, 3), round(arm.plan(scenario, 1.0, 7).noise_multiplier, 2)
        (2.68, 26.8)
        """
        placed, noise = self.placed(scenario), self.noise_multiplier
        if self.name == "every":
            # The noises of all clients add up to one of this deviation: it is drawn once.
            noise *= math.sqrt(scenario.clients)
        return RandomParticipationSGD(
            placed.client_rate,
            placed.sample_rate,
            clip,
            noise_multiplier=noise or None,
            noise="exact" if noise else "none",
            local_size=placed.local_size,
            mode="participants_only" if self.name == "each" else "trusted_server",
            seed=seed,
        )


def _placed(name: str, scenario: Scenario) -> Scenario:
    return scenario.pooled() if name == "central" else scenario


def arms_of(
    scenario: Scenario,
    epsilon: float,
    delta: float,
    learning_rates: Mapping[str, float],
    rounds: int = 1,
) -> list[Arm]:
    """Choose the noise that each analysis requires at the same epsilon and delta.

    Parameters
    ----------
    scenario
        Who takes part.
    epsilon, delta
        What ``rounds`` rounds may cost together.
    learning_rates
        One for each arm that is wanted.

        * ``"none"``: no privacy.
        * ``"central"``: one party has all data and draws each batch by itself, as with Opacus.
        * ``"sound"``: the sound bound of random participation.
        * ``"wcs"``: weak client sampling, the bound of the paper before.
        * ``"ols"``: only local sampling, Poisson accounting without participation.
        * ``"each"``: nobody trusts the server, and each client that takes part adds noise.
        * ``"every"``: nobody trusts the server, and every client adds noise in every round.
        * ``"unsound"``: Theorem 4.1 of the paper, which is no bound. It is there to be seen, for
          one round. It is left out where its formula is below delta for every noise and so
          requires none.
    rounds
        How many rounds the target is for.

    Returns
    -------
    list of Arm
        In the order of this list.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or there is no such arm.

    Examples
    --------
    The paper's first setting, and its printed noise multipliers 1.065, 7.65 and 22.4:

    >>> paper_scenario = Scenario("many clients", 23264, 30, client_rate=0.001, sample_rate=0.1)
    >>> for arm in arms_of(paper_scenario, 0.015, 1e-6, dict.fromkeys(["sound", "wcs", "ols"], 1)):
    ...     print(arm.label, round(arm.noise_multiplier, 3))
    random participation 2.373
    weak client sampling 7.665
    only local sampling 22.497
    """
    unknown = sorted(set(learning_rates) - set(_LABELS))
    if unknown:
        raise _arguments.invalid(
            f"learning_rates must have keys among {', '.join(_LABELS)}", unknown[0]
        )
    if "unsound" in learning_rates and rounds != 1:
        raise _arguments.invalid("rounds must be 1 with the arm 'unsound'", rounds)
    chosen = []
    for name in [name for name in _LABELS if name in learning_rates]:
        keeps_target = name not in ("none", "unsound")
        noise: float | None = 0.0
        if name == "unsound":
            noise = _claimed(scenario, epsilon, delta)
        elif keeps_target:
            mechanism = _accounted(name, _placed(name, scenario), 1.0)
            noise = float(calibrate_noise(mechanism, epsilon=epsilon, delta=delta, rounds=rounds))
        if noise is not None:
            rate = _arguments.number(f"learning_rates[{name!r}]", learning_rates[name])
            chosen.append(Arm(name, _LABELS[name], noise, rate, keeps_target))
    return chosen


def _accounted(name: str, placed: Scenario, noise_multiplier: float) -> Mechanism:
    """Give the mechanism of a round as the analysis of an arm sees it."""
    if name in ("central", "ols"):
        return LocalSampling(placed.sample_rate, noise_multiplier)
    rates = placed.client_rate, placed.sample_rate
    if name in ("wcs", "each"):
        return WeakClientSampling(*rates, noise_multiplier)
    return RandomParticipation(*rates, placed.local_size, noise_multiplier)


def _claimed(scenario: Scenario, epsilon: float, delta: float) -> float | None:
    """Give the noise that Theorem 4.1, which is no bound, claims to be enough; None if none is."""
    from scipy.optimize import brentq  # noqa: PLC0415 (slow)

    def excess(noise: float) -> float:
        claimed = paper.theorem_4_1_delta(
            epsilon, scenario.client_rate, scenario.sample_rate, scenario.local_size, noise
        )
        return float(claimed) - delta

    above = 1.0
    while excess(above) > 0.0:
        above *= 2.0
    below = above / 1.05
    # From above, since it does not fall with the noise everywhere.
    while excess(below) <= 0.0:
        above, below = below, below / 1.05
        if below < _LEAST_CLAIMED_NOISE:
            return None
    return float(brentq(excess, below, above))
