from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "DirectEncoding",
    "IntegerNoise",
    "count_sampling",
    "design_sums",
    "poisson_sampling",
    "random_participation",
    "random_participation_grid",
    "shuffled",
]

_Codes = npt.NDArray[Any]
_Counts = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float64]

@final
class DirectEncoding:
    def __new__(cls, epsilon: float, domain_size: int) -> DirectEncoding: ...
    @property
    def words(self) -> tuple[int, int]: ...
    @property
    def realized_epsilon(self) -> float: ...
    @property
    def support_probabilities(self) -> tuple[float, float]: ...
    def randomize(self, codes: _Codes, rate: float, seed: int | None = None) -> _Codes: ...
    def randomize_personalized(
        self, codes: _Codes, probabilities: _Floats, seed: int | None = None
    ) -> tuple[_Codes, _Floats]: ...
    def tally(self, reports: _Codes) -> _Counts: ...
    def tally_personalized(
        self, reports: _Codes, probabilities: _Floats
    ) -> tuple[_Counts, _Counts, _Counts]: ...
    def collect(self, codes: _Codes, rate: float, seed: int | None = None) -> _Counts: ...
    def collect_personalized(
        self, codes: _Codes, probabilities: _Floats, seed: int | None = None
    ) -> tuple[_Counts, _Counts, _Counts]: ...
    def simulate(self, true_counts: _Counts, rate: float, seed: int | None = None) -> _Counts: ...

def design_sums(probabilities: _Floats) -> tuple[int, int]: ...

@final
class IntegerNoise:
    def __new__(cls, kind: str, scale: float) -> IntegerNoise: ...
    def profile(self, epsilon: _Floats) -> _Floats: ...

def random_participation(
    epsilon: _Floats,
    noise_multiplier: float,
    client_rate: float,
    sample_rate: float,
    local_size: int,
) -> _Floats: ...
def random_participation_grid(
    epsilon: _Floats,
    noise_multiplier: _Floats,
    client_rate: _Floats,
    sample_rate: _Floats,
    local_size: _Counts,
) -> _Floats: ...
def poisson_sampling(
    epsilon: _Floats, noise_multiplier: float, sample_rate: float, client_rate: float
) -> _Floats: ...
def count_sampling(epsilon: _Floats, rate: float, floor: int) -> _Floats: ...
def shuffled(
    epsilon: _Floats, nodes: int, law: tuple[float, float, float, float, float, float]
) -> _Floats: ...
