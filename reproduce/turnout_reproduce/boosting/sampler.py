"""Draw from mollified boosted density estimates (MBDE)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Floats
from turnout.samplers._arguments import copy_of, random_state_of
from turnout.samplers.adapters import as_reference
from turnout.samplers.base import PointSampler
from turnout.samplers.normalizer import LogNormalizer, log_normalizer
from turnout.samplers.reference import Reference, check_support
from turnout_reproduce.boosting.rejection import automatic_trials, rejection
from turnout_reproduce.boosting.weak_learner import (
    LOG_TWO,
    BoostedScore,
    check_learner,
    default_learner,
    fitted_score,
)

#: At least so many records of either class train a weak learner.
_LEAST_RECORDS = 500

#: How many proposals from the reference there are for each draw that a weak learner is trained on.
_PROPOSALS = 8


@dataclass(frozen=True)
class BoostingRound:
    """The result of one round of boosting, which is private like the whole fitted sampler.

    Attributes
    ----------
    weight
        theta_t, the weight of the round's weak learner.
    edge_records
        gamma_P: the mean score over the records, divided by log 2.
    edge_density
        gamma_Q: minus the mean score under the density before the round, divided by log 2.
    divergence_drop
        How much KL(P, Q) fell, where P is the empirical distribution of the records. It is
        estimated on the draws that trained the weak learner.
    certificate
        The proven bound of ``|log Q/Q0|`` after the round.
    """

    weight: float
    edge_records: float
    edge_density: float
    divergence_drop: float
    certificate: float


@dataclass(eq=False, repr=False)
class MollifiedBoosting(PointSampler):
    """A sampler of private draws from a boosted density (MBDE).

    Each round trains a classifier to tell the person's records from draws of the current density,
    clips its log-odds to [-log 2, log 2] and tilts the density by them with weight
    ``(epsilon / (epsilon + 4 log 2))^t``. The sum of all scores then stays in
    [-epsilon/4, epsilon/4], so that the density is in the mollifier of the reference whatever the
    classifiers do. Draws are exact: rejection from the reference with exact Bernoulli trials.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    reference
        The public reference Q0: anything that :func:`as_reference` takes; standard normal if None.
    n_rounds
        The largest number of rounds.
    weak_learner
        Any classifier with ``predict_proba`` or ``decision_function``; a copy is fitted in every
        round. If None, scikit-learn's ``MLPClassifier`` with three layers of 25 tanh units and
        Nesterov's momentum, the paper's.
    trials
        How many proposals a draw sees. If None, enough that the chance of the fall-back to the
        reference is at most 1e-6, whatever the data; but at most 2^20.
    random_state
        Seeds the training; draws are not affected.
    progress
        Whether to show a progress bar during long work.

    Attributes
    ----------
    rounds_
        A :class:`BoostingRound` for each round that was kept.
    score_
        Returns the boosted score at points of shape (n, d), within ``[-s, s]``.
    certificate_
        A proven bound of ``|log Q/Q0|`` for the law Q of a draw: the width of the score's range, at
        most ``epsilon / 2``. It reveals how many rounds were kept, and is private for that reason.
    trials_
        How many proposals a draw sees.
    fallback_weight_
        The largest chance of the fall-back to the reference, whatever the data.
    reference_
        The reference.
    budget_
        The budget that pays for draws if you give no other; it allows one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the data cannot be used. A record outside the support of the
        reference is refused.
    MissingExtraError
        From ``fit``, if scikit-learn is not installed.

    Notes
    -----
    The published bound needs clipped scores (the authors' program does not clip). The law of a draw
    is ``(1 - f) Q_T + f Q0``, where f is the chance that no trial is accepted. It is still in the
    mollifier, which is convex, and ``score_samples`` gives its density. The number of trials is
    fixed: a number that depended on the data would reveal something about the data through timing.

    Boosting stops early when a weak learner is no better than chance.

    References
    ----------
    Husain, Balle, Cranko, Nock, "Local differential privacy for sampling" (AISTATS 2020),
    algorithm 1 and theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> records = np.random.default_rng(1).normal(1.0, 0.2, size=(300, 1))
    >>> sampler = MollifiedBoosting(
    ...     epsilon=1.0, weak_learner=LogisticRegression(), n_rounds=3, random_state=1
    ... ).fit(records)
    >>> sampler.sample(1).shape
    (1, 1)
    >>> sampler.certificate_ <= 0.5
    True
    """

    epsilon: float = 1.0
    _: KW_ONLY
    reference: Any = None
    n_rounds: int = 10
    weak_learner: Any = None
    trials: int | None = None
    random_state: int | None = None
    progress: bool = False

    rounds_: tuple[BoostingRound, ...] = field(init=False)
    _score_: BoostedScore = field(init=False)
    trials_: int = field(init=False)
    _reference_: Reference = field(init=False)

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self._check_fitted()
        return 2.0 * self._score_.most

    @property
    def fallback_weight_(self) -> float:
        """The largest chance of the fall-back to the reference, whatever the data."""
        self._check_fitted()
        refused = -math.expm1(-2.0 * self._public_most)
        return refused**self.trials_

    def _fit(self, records: Floats) -> None:
        epsilon = self._check_epsilon()
        n_rounds = _arguments.integer("n_rounds", self.n_rounds, least=1, most=10_000)
        seed = random_state_of(self.random_state)
        if self.weak_learner is not None:
            check_learner(self.weak_learner)
        self._reference_ = as_reference(self.reference, records.shape[1])
        check_support("X", records, self._reference_)
        weights = boosting_weights(epsilon, n_rounds)
        most = score_bound(epsilon, weights)
        self._public_most = most
        if self.trials is None:
            self.trials_ = automatic_trials(2.0 * most)
        else:
            self.trials_ = _arguments.integer("trials", self.trials, least=1, most=2**30)
        learners: list[Any] = []
        rounds: list[BoostingRound] = []
        score = BoostedScore([], [], 0.0)
        size = max(len(records), _LEAST_RECORDS)
        positives = records[np.resize(np.arange(len(records)), size)]
        for number, weight in enumerate(track(weights, "boosting", self.progress)):
            negatives = self._current(score, size, derived(seed, 6, number))
            learner = fitted_score(
                self._learner(2 * size, derived(seed, 7, number)), positives, negatives
            )
            alone = BoostedScore([learner], [1.0], LOG_TWO)
            found, own = alone(records), alone(negatives)
            edge_records = float(found.mean()) / LOG_TWO
            edge_density = -float(own.mean()) / LOG_TWO
            if edge_records + edge_density <= 0.0:
                break
            learners.append(learner)
            kept = weights[: len(learners)]
            score = BoostedScore(learners, kept, score_bound(epsilon, kept))
            rounds.append(
                BoostingRound(
                    weight=weight,
                    edge_records=edge_records,
                    edge_density=edge_density,
                    divergence_drop=float(
                        weight * found.mean() - np.log(np.mean(np.exp(weight * own)))
                    ),
                    certificate=2.0 * score.most,
                )
            )
        # The time of a draw must not tell how many rounds were kept: the others weigh nothing.
        idle = n_rounds - len(learners)
        self._score_ = BoostedScore(
            [*learners, *[learner] * idle], [*score.weights, *[0.0] * idle], score.most
        )
        self.rounds_ = tuple(rounds)
        self._normalizer: LogNormalizer | None = None

    def _learner(self, records: int, seed: int | None) -> Any:
        small = None if seed is None else seed % 2**32
        if self.weak_learner is None:
            return default_learner(records, small)
        learner = copy_of(self.weak_learner)
        known = learner.get_params() if hasattr(learner, "get_params") else {}
        if small is not None and "random_state" in known:
            learner.set_params(random_state=small)
        return learner

    def _current(self, score: BoostedScore, size: int, seed: int | None) -> Floats:
        """Draw roughly from the current density, for training only: nothing of it is released."""
        drawn = self._reference_.draw(_PROPOSALS * size, seed=derived(seed, 8))
        # Importance resampling takes the same time however far the density is from the reference.
        total = np.cumsum(np.exp(score(drawn) - score.most))
        spread = (np.arange(size) + _core.uniforms(1, derived(seed, 9))) / size
        result: Floats = drawn[np.searchsorted(total, spread * total[-1]).clip(0, len(drawn) - 1)]
        return result

    def _draw(self, count: int, seed: int | None) -> Floats:
        most = self._score_.most
        return rejection(
            self._reference_,
            lambda points: most - self._score_(points),
            most=2.0 * most,
            trials=self.trials_,
            count=count,
            seed=seed,
        )

    def _log_density(self, records: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            base = self._reference_.log_density(records)
        normalizer = self._log_normalizer().value
        # The chance that one trial is accepted is exp(normalizer - most).
        refused = -math.expm1(min(0.0, normalizer - self._score_.most))
        fallback = refused**self.trials_
        tilted = self._score_(records) - normalizer
        result: Floats = base + np.log((1.0 - fallback) * np.exp(tilted) + fallback)
        return result

    def _log_normalizer(
        self,
        *,
        points: int = 2**17,
        confidence: float = 1.0 - 1e-9,
        seed: int | None = None,
    ) -> LogNormalizer:
        """Integrate ``exp(score)`` under the reference, with proven bounds.

        Parameters
        ----------
        points, confidence, seed
            As for :func:`log_normalizer`. The result for the default arguments is kept.

        Returns
        -------
        LogNormalizer
            The logarithm phi of the integral, and its bounds.
        """
        self._check_fitted()
        default = points == 2**17 and confidence == 1.0 - 1e-9 and seed is None
        if default and self._normalizer is not None:
            return self._normalizer
        most = self._score_.most
        found = log_normalizer(
            self._score_,
            self._reference_,
            least=-most,
            most=most,
            points=points,
            confidence=confidence,
            seed=derived(random_state_of(self.random_state), 10) if default else seed,
        )
        if default:
            self._normalizer = found
        return found


def boosting_weights(epsilon: float, n_rounds: int) -> tuple[float, ...]:
    """Return theta_1, ..., theta_T = (epsilon / (epsilon + 4 log 2))^t."""
    base = epsilon / (epsilon + 4.0 * LOG_TWO)
    return tuple(base**number for number in range(1, n_rounds + 1))


def score_bound(epsilon: float, weights: tuple[float, ...]) -> float:
    """Bound the boosted score: log 2 times the sum of the weights, never above epsilon / 4."""
    total = float(sum(Fraction(weight) for weight in weights) * Fraction(LOG_TWO))
    return min(total, epsilon / 4.0)
