"""Oracles of known support probabilities, for tests of what only these matter to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import _kinds
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle


class PlainOracle(FrequencyOracle):
    """Independent bits, simulated by NumPy."""

    name = "test_plain"

    def __init__(self, epsilon: float, domain: tn.Domain | int) -> None:
        super().__init__(epsilon, domain)

    @property
    def realized_ratio(self) -> Fraction:
        return Fraction(math.exp(self.epsilon) * (1.0 - 1e-12))

    @property
    def realized_epsilon(self) -> float:
        return self.epsilon

    @property
    def support_probabilities(self) -> tuple[float, float]:
        return 0.5, 1.0 / (math.exp(self.epsilon) + 1.0)

    @property
    def report_bits(self) -> int:
        return self.domain.size

    @property
    def _kernel(self) -> Any:
        raise NotImplementedError

    def _received(self, support: Any) -> int:
        raise NotImplementedError

    def _check_support(self, support: Any, received: int) -> None:
        """Any counts can be."""

    def simulate(
        self, true_counts: Any, *, participation: Any = None, seed: int | None = None
    ) -> tn.Tally:
        generator = np.random.default_rng(seed)
        counts = np.asarray(true_counts, dtype=np.int64)
        rate = (participation or tn.Everyone()).uniform_rate
        present = generator.binomial(counts, rate)
        p, q = self.support_probabilities
        support = generator.binomial(present, p) + generator.binomial(present.sum() - present, q)
        plan = tn.Plan(self, participation or tn.Everyone())
        return tn.Tally(plan, support.astype(np.uint64), int(present.sum()), int(counts.sum()))


# A subclass makes itself known for good: other tests must not meet these.
_kinds.REGISTERED.pop("test_plain")


class HashedOracle(PlainOracle):
    """Reports of few bits, a little worse than the plain ones."""

    name = "test_hashed"

    @property
    def support_probabilities(self) -> tuple[float, float]:
        other = 1.0 / round(math.exp(self.epsilon) + 1.0)
        return 0.5, max(other, 1.0 / (math.exp(self.epsilon) + 1.0)) * 1.0005

    @property
    def report_bits(self) -> int:
        return 9


_kinds.REGISTERED.pop("test_hashed")


class FussyOracle(PlainOracle):
    """Takes only two answers."""

    name = "test_fussy"

    def __init__(self, epsilon: float, domain: tn.Domain | int) -> None:
        super().__init__(epsilon, domain)
        if self.domain.size > 2:
            raise InvalidValueError(f"domain must have two answers, got {self.domain.size}")


_kinds.REGISTERED.pop("test_fussy")


@pytest.fixture
def plain() -> type[PlainOracle]:
    return PlainOracle


@pytest.fixture
def hashed() -> type[HashedOracle]:
    return HashedOracle


@pytest.fixture
def fussy() -> type[FussyOracle]:
    return FussyOracle


@pytest.fixture
def several() -> list[type[FrequencyOracle]]:
    return [tn.DirectEncoding, PlainOracle, HashedOracle, FussyOracle]


@pytest.fixture(autouse=True)
def no_figure_stays() -> Iterator[None]:
    from matplotlib import pyplot as plt

    yield
    plt.close("all")
