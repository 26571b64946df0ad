"""Measure how far one ``collect`` raises a process's peak memory beyond the input.

Each figure comes from a fresh process: ``python memory.py CONTENDER NODES`` builds the input (one
byte a node), notes the peak, collects at participation 0.1 and at participation 1, and prints by
how many bytes the peak has grown.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

import reference

EPSILON = 1.0
DOMAIN_SIZE = 100
RATES = (0.1, 1.0)
#: A peak that grows by less than this, between the smallest and the largest input, is flat.
FLAT_BYTES = 8 << 20
#: Seconds after which a measurement is given up.
TIMEOUT = 300.0

_STATUS = Path("/proc/self/status")


def peak_growth(contender: str, nodes: int) -> int:
    """Return the growth in bytes that a fresh process measures.

    Raises
    ------
    RuntimeError
        If the process fails or takes too long; the message is the last line that it wrote.
    """
    command = [sys.executable, str(Path(__file__).resolve()), contender, str(nodes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        message = f"no answer within {TIMEOUT:.0f} s"
        raise RuntimeError(message) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return int(json.loads(done.stdout)["growth_bytes"])


def is_flat(growths: list[int]) -> bool:
    """Return whether the growths, over inputs of several sizes, are all the same but for noise."""
    return max(growths) - min(growths) <= FLAT_BYTES


def _peak_bytes() -> int:
    """Return the highest resident size of this process so far."""
    if _STATUS.exists():
        # On Linux ru_maxrss survives exec, so the parent's peak would hide the growth here.
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    resource = importlib.import_module("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _forget_peak() -> None:
    """Set the recorded peak back to the present size, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _turnout_collect() -> Callable[[npt.NDArray[np.uint8], float], object]:
    turnout = importlib.import_module("turnout")
    oracle = turnout.DirectEncoding(EPSILON, turnout.Domain.from_integers(DOMAIN_SIZE))

    def collect(codes: npt.NDArray[np.uint8], rate: float) -> object:
        everyone = turnout.Everyone()
        part = everyone if rate >= 1.0 else turnout.Bernoulli(rate)
        return oracle.collect(codes, participation=part)

    return collect


def _numpy_collect(block: int | None) -> Callable[[npt.NDArray[np.uint8], float], object]:
    keep = reference.keep_probability(EPSILON, DOMAIN_SIZE)
    rng = np.random.default_rng()
    select: reference.Selector = reference.positions if block is None else reference.gaps
    randomize = partial(reference.one_number, k=DOMAIN_SIZE, keep=keep, rng=rng)

    def collect(codes: npt.NDArray[np.uint8], rate: float) -> object:
        chosen = partial(select, rate=rate, rng=rng)
        return reference.collect(codes, DOMAIN_SIZE, chosen, randomize, block)

    return collect


CONTENDERS: dict[str, Callable[[], Callable[[npt.NDArray[np.uint8], float], object]]] = {
    "turnout": _turnout_collect,
    "NumPy": lambda: _numpy_collect(None),
    "NumPy, tuned": lambda: _numpy_collect(reference.BLOCK),
}


def main(contender: str, nodes: int) -> None:
    """Measure in this process and write the growth to standard output as JSON."""
    collect = CONTENDERS[contender]()
    rng = np.random.default_rng(0)
    codes = np.empty(nodes, dtype=np.uint8)
    for start in range(0, nodes, reference.BLOCK):
        block = codes[start : start + reference.BLOCK]
        block[:] = rng.integers(0, DOMAIN_SIZE, block.size, dtype=np.uint8)
    for rate in RATES:
        collect(codes[:1000], rate)  # starts threads and loads what is loaded late
    _forget_peak()
    before = _peak_bytes()
    for rate in RATES:
        collect(codes, rate)
    sys.stdout.write(json.dumps({"growth_bytes": _peak_bytes() - before}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
