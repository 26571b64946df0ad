"""Try a round without paying for it: gradients, clipping, noise, and the size of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout._types import Array, Floats
from turnout.errors import InvalidValueError
from turnout.federated.clipping import norms as norms_of
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.sums import clipped_rows, finite_rows
from turnout.federated.trees import Structure, vector

#: If the loss is still larger after so many steps, it is taken to grow for ever.
_STEPS = 8

#: At how many places of a step gradients are computed at most, each by this factor nearer to its
#: start than the one before.
_PLACES, _NEARER = 8, 16.0

#: Gradients this many times as long as the clip are hardly worth their noise.
_FAR = 100.0


@dataclass(frozen=True)
class Check:
    """The result of :meth:`turnout.federated.InProcessEngine.check`, as private as the data.

    ``str`` describes it in sentences.

    Attributes
    ----------
    gradients
        The number of gradients that were tried; where a client is the unit, the number of clients.
    not_finite
        The number of those that are not finite. They count as zero.
    clipped
        The share of the other gradients that are longer than the clip.
    median_norm
        The median of the norms of these other gradients before clipping.
    clip
        The clip of the round.
    noise
        The average norm of the noise of a round, divided by the norm of its mean gradient.
    loss_change
        The change of the mean loss of these elements by a step without noise, estimated from the
        gradients before and after it, and between if these differ a lot. With
        :func:`~turnout.federated.local_steps` the changes of clients' models stand for gradients:
        then only the sign means anything.
    noisy_loss_change
        The same for a step with noise.
    """

    gradients: int
    not_finite: int
    clipped: float
    median_norm: float
    clip: float
    noise: float
    loss_change: float
    noisy_loss_change: float

    def __str__(self) -> str:
        """Describe the result in sentences, one on each line."""
        lines = [
            f"{self.gradients} gradients were tried, {self.not_finite} are not finite and count as "
            "zero",
            f"{self.clipped:.0%} are clipped; the median norm is {self.median_norm:.3g}",
            f"the noise of a round is {self.noise:.3g} times as long as its mean gradient",
            f"a step changes the loss by about {self.loss_change:+.3g} without noise, "
            f"{self.noisy_loss_change:+.3g} with it",
        ]
        if self.median_norm > _FAR * self.clip:
            lines.append(
                f"gradients are far longer than the clip of {self.clip:.3g}: take a larger one, or "
                "where clients make several steps a smaller learning rate of theirs"
            )
        if self.loss_change > 0.0:
            lines.append("the first step is too long, later ones make up for it")
        elif self.noisy_loss_change > 0.0:
            lines.append(
                "with this noise a step makes the loss larger: take a smaller learning rate, more "
                "clients, or fewer rounds"
            )
        return "\n".join(lines)


class _Tried:
    """The gradients of the elements of a round at one model."""

    def __init__(
        self,
        plan: RandomParticipationSGD,
        structure: Structure,
        found: Iterable[tuple[Any, list[int]]],
        clip: float,
    ) -> None:
        norms: list[Array] = []
        finite: list[Array] = []
        self.mean, self.clipped = np.zeros(structure.total), np.zeros(structure.total)
        for gradients, counts in found:
            parts = clipped_rows(plan, gradients, counts, structure)
            usable = finite_rows(parts)
            if not usable.all():
                parts = [part[usable] for part in parts]
            lengths = norms_of(parts)
            # A norm beyond floating point is clipped to nothing: its direction is not known.
            factor = np.where(lengths > clip, clip / np.maximum(lengths, 1e-300), 1.0)
            self.mean += np.concatenate([part.sum(axis=0, dtype=np.float64) for part in parts])
            self.clipped += np.concatenate([factor.astype(part.dtype) @ part for part in parts])
            norms.append(lengths)
            finite.append(usable)
        self.finite = np.concatenate(finite)
        self.norms = np.concatenate(norms)
        self.mean /= max(self.norms.size, 1)
        self.clipped /= self.finite.size


def check_round(
    plan: RandomParticipationSGD,
    optimizer: Optimizer,
    parameters: Any,
    structure: Structure,
    ask: Callable[[Any], Iterable[tuple[Any, list[int]]]],
    *,
    round: int,  # noqa: A002 (the field's word)
    available: int,
    filled: float,
    clip: float,
) -> Check:
    """Compute gradients of a round, a step without and one with noise, and gradients after each.

    Parameters
    ----------
    plan, optimizer, parameters, structure
        Those of the training. They do not change.
    ask
        ``ask(model)`` returns the gradients at a model, once for each group of clients that it
        asks, and the number of elements of each client.
    round
        The number of the round.
    available
        The number of clients that are available.
    filled
        The number of elements, divided by the number that scales the sum.
    clip
        The clip of the round.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If gradients have a wrong shape or dtype, none is finite, or a step is too large.
    """
    start = vector(parameters)
    before = _Tried(plan, structure, ask(parameters), clip)
    if not before.norms.size:
        raise InvalidValueError(
            f"gradients must be finite numbers, got NaN or infinity for all {before.finite.size} "
            "that were tried. Look for a logarithm or a division of 0 in the loss, or for data "
            "that are NaN"
        )
    senders = {"trusted_server": 1.0, "always_send": available}.get(
        plan.mode, plan.client_rate * available
    )
    own = plan._own(plan._gradient_noise)
    deviation = own * clip * math.sqrt(senders) * plan._scale(available)
    noise = np.random.default_rng(plan.seed).normal(0.0, 1.0, start.size) * deviation
    gradient = before.clipped * filled
    trial = _Steps(
        optimizer,
        structure,
        round,
        filled,
        lambda model: _Tried(plan, structure, ask(structure.from_vector(model)), clip),
    )
    quiet = trial.change(start, before, gradient, "without noise")
    if quiet > 0.0:
        trial.refuse_growth(start, before, quiet)
    noisy = trial.change(start, before, gradient + noise, "with noise")
    return Check(
        gradients=before.finite.size,
        not_finite=int((~before.finite).sum()),
        clipped=float(np.mean(before.norms > clip)),
        median_norm=float(np.median(before.norms)),
        clip=clip,
        noise=_ratio(deviation * math.sqrt(start.size), float(np.linalg.norm(gradient))),
        loss_change=quiet,
        noisy_loss_change=noisy,
    )


@dataclass(frozen=True)
class _Steps:
    """Steps of the optimizer from rest, on the elements of one round."""

    optimizer: Optimizer
    structure: Structure
    round: int
    filled: float
    #: Gives what is found at a model.
    at: Callable[[Floats], _Tried]

    def change(self, start: Floats, before: _Tried, gradient: Floats, name: str) -> float:
        """Estimate the change of the loss by one step."""
        moved, _ = self._step(start, gradient, self.optimizer.initial_state(start.size), name)
        return self._between(start, before, moved, self._tried(moved, before, name), name)

    def refuse_growth(self, start: Floats, before: _Tried, first: float) -> None:
        """Refuse a rate at which the loss grows and stays above its start in further steps."""
        name = "without noise"
        state: Sequence[Array] = self.optimizer.initial_state(start.size)
        model, at = start, before
        for _ in range(_STEPS):
            model, state = self._step(model, at.clipped * self.filled, state, name)
            at = self._tried(model, before, name)
            # Back to the start it goes up: a convex loss is lower here.
            if _slope(at, model - start) < 0.0:
                return
        change = self._between(start, before, model, at, name)
        if change < 0.0:
            return
        raise InvalidValueError(
            "learning_rate is too large: even without noise the first step makes the loss larger, "
            f"by about {first:.3g}, and after {_STEPS} steps it is larger by about {change:.3g} "
            "(as the gradients before and after each step tell)"
        )

    def _step(
        self, model: Floats, gradient: Floats, state: Sequence[Array], name: str
    ) -> tuple[Floats, Sequence[Array]]:
        with np.errstate(over="ignore", invalid="ignore"):
            moved, after = self.optimizer.step(model, gradient, state, self.round)
        if self.structure.finite(moved) is None:
            raise InvalidValueError(
                f"learning_rate is too large: a step {name} leads to a model that is not finite"
            )
        return moved, after

    def _tried(self, model: Floats, before: _Tried, name: str) -> _Tried:
        after = self.at(model)
        lost = before.finite & ~after.finite
        if lost.any():
            raise InvalidValueError(
                f"learning_rate is too large: after a step {name} {int(lost.sum())} of "
                f"{before.norms.size} gradients are not finite any more"
            )
        return after

    def _between(
        self, start: Floats, before: _Tried, end: Floats, after: _Tried, name: str
    ) -> float:
        """Estimate the change of the loss; exact where the loss is quadratic along the step.

        If the slopes at both ends differ a lot, a long step may have left behind all of what made
        the loss fall: then slopes nearer and nearer to the start count too.
        """
        way = end - start
        first, place, slope = _slope(before, way), 1.0, _slope(after, way)
        change = 0.0
        for _ in range(_PLACES):
            if abs(slope - first) <= abs(first) / 2.0:
                break
            nearer = place / _NEARER
            found = _slope(self._tried(start + nearer * way, before, name), way)
            change += (place - nearer) * (slope + found) / 2.0
            place, slope = nearer, found
        return change + place * (slope + first) / 2.0


def _slope(at: _Tried, way: Floats) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(at.mean @ way)


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0.0 else (math.inf if above > 0.0 else 0.0)
