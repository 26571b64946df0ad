"""The job of noise on a grid, which the table of federated training takes up.

turnout's numbers are exact, from a cryptographic generator keyed by the operating system; NumPy
draws floating-point numbers with its default generator, on one core, and rounds them.
"""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs import Job, Target
from measurement import Contender

DRAWS = 1_000_000
BITS = 24


def noise(turnout: ModuleType | None, reference: str) -> Job:
    """Return the job with a contender for turnout, if it is at hand, and for NumPy.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure NumPy alone.
    reference
        The name of the column for NumPy.
    """
    contenders = []
    if turnout is not None:
        core = importlib.import_module(f"{turnout.__name__}._core")
        call = partial(core.rounded_gaussian, DRAWS, BITS)
        contenders.append(Contender("turnout", "rounded_gaussian", DRAWS, call, _accept))
    random = np.random.default_rng()
    call = partial(_numpy, random)
    contenders.append(Contender(reference, "standard_normal, rint", DRAWS, call, _accept))
    return Job(f"{DRAWS:,} rounded Gaussian numbers, {BITS} bits", contenders, Target(), timed=True)


def _numpy(random: np.random.Generator) -> npt.NDArray[np.int64]:
    draws = random.standard_normal(DRAWS)
    draws *= 2.0**BITS
    return np.rint(draws, out=draws).astype(np.int64)


def _accept(numbers: Any) -> bool:
    deviation = float(np.std(numbers / 2.0**BITS))
    return numbers.dtype == np.int64 and len(numbers) == DRAWS and abs(deviation - 1) < 0.01
