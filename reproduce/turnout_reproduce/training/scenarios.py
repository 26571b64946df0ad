"""Who has how much data, and the noise that each analysis asks for."""

from __future__ import annotations

import dataclasses
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

    def delta(self, epsilon: float, noise_multiplier: float) -> float:
        """Give the delta of a round that is proven for a noise multiplier."""
        mechanism = RandomParticipation(
            self.client_rate, self.sample_rate, self.local_size, noise_multiplier
        )
        return float(mechanism.delta(epsilon))


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to choose the noise.

    Parameters
    ----------
    name
        A word for files: ``"none"``, ``"sound"``, ``"wcs"``, ``"ols"`` or ``"unsound"``.
    label
        What pictures and tables call it.
    noise_multiplier
        The standard deviation of the noise over the clipping norm; 0 for no noise and no clipping.
    learning_rate
        Of stochastic gradient descent.
    keeps_target
        Whether epsilon and delta of a round are proven to be at most those of the study.
    """

    name: str
    label: str
    noise_multiplier: float
    learning_rate: float
    keeps_target: bool


def arms_of(
    scenario: Scenario, epsilon: float, delta: float, learning_rates: Mapping[str, float]
) -> list[Arm]:
    """Choose the noise that each analysis asks for at the same epsilon and delta of a round.

    Parameters
    ----------
    scenario
        Who takes part.
    epsilon, delta
        What a round may cost.
    learning_rates
        One for each arm that is wanted: ``"none"`` (no privacy), ``"sound"`` (the sound bound of
        random participation), ``"wcs"`` (weak client sampling), ``"ols"`` (only local sampling) and
        ``"unsound"``: Theorem 4.1 of the paper, which is no bound. It is there to be seen, and left
        out where its formula is below delta for every noise and so asks for none.

    Returns
    -------
    list of Arm
        In the order of the noise: none, unsound, sound, wcs, ols.

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
    sound bound 2.373
    weak client sampling 7.665
    only local sampling 22.497
    """
    p, q = scenario.client_rate, scenario.sample_rate
    labels = {
        "none": "no privacy",
        "unsound": "unsound: Theorem 4.1",
        "sound": "sound bound",
        "wcs": "weak client sampling",
        "ols": "only local sampling",
    }
    sound: dict[str, Mechanism] = {
        "sound": RandomParticipation(p, q, scenario.local_size, 1.0),
        "wcs": WeakClientSampling(p, q, 1.0),
        "ols": LocalSampling(q, 1.0),
    }
    unknown = sorted(set(learning_rates) - set(labels))
    if unknown:
        raise _arguments.invalid(
            f"learning_rates must have keys among {', '.join(labels)}", unknown[0]
        )
    chosen = []
    for name in [name for name in labels if name in learning_rates]:
        noise: float | None = 0.0
        if name in sound:
            noise = float(calibrate_noise(sound[name], epsilon=epsilon, delta=delta))
        elif name == "unsound":
            noise = _claimed(scenario, epsilon, delta)
        if noise is not None:
            rate = _arguments.number(f"learning_rates[{name!r}]", learning_rates[name])
            chosen.append(Arm(name, labels[name], noise, rate, keeps_target=name in sound))
    return chosen


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
