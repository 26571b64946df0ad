"""What reports and noise of the installed packages show, found by running them.

Two checks. The first seeds every generator that a Python program shares (``random``, NumPy's,
numba's, PyTorch's) twice in the same way and asks for noise after each: if it is the same, the
noise comes from such a generator, which is not cryptographic and which any other part of the
program may seed. The second looks at the order in which subset selection returns its subset: if the
first entry is the true answer more often than local privacy allows for any guess, the order has to
be removed before a report is sent.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from report import Figures, Row

EPSILON, DOMAIN_SIZE = 1.0, 100
REPORTS = 20_000
SEED = 20_261_122

NOISE_HEADINGS = ("program", "call", "repeats after seeding", "finding")
ORDER_HEADINGS = ("program", "call", "first entry is the answer", "at most, by epsilon", "finding")
#: Calls whose noise is compared: so many values that they are not the same by chance.
DRAWS = 64


def measure(turnout: Any) -> list[Figures]:
    """Return both tables.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None.
    """
    noises: dict[tuple[str, str], Callable[[], Callable[[], Any]]] = {
        ("pure-ldp", "DEClient.privatise"): _pure_ldp,
        ("multi-freq-ldpy", "GRR_Client"): _multi_freq_ldpy,
        ("ldp-toolbox", "GeneralizedRandomizedResponse.obfuscate"): _ldp_toolbox,
        ("OpenDP", "make_randomized_response"): _opendp,
        ("diffprivlib", "tools.histogram"): _diffprivlib,
        ("flwr", "LocalDpMod's noise"): _flower,
        ("opacus", "DPOptimizer's noise, secure_mode=False"): _opacus,
    }
    if turnout is not None:
        noises = {("turnout", "randomize"): lambda: _own(turnout), **noises}
    rows, missing = [], []
    for (program, call), make in noises.items():
        try:
            same = repeats(make())
        except ImportError as error:
            missing.append(f"{program}: not installed: {error}")
            continue
        finding = "a generator that the program shares" if same else "a generator of its own"
        cells = (program, call, "yes" if same else "no", finding)
        rows.append(Row(cells, "", {"program": program, "call": call, "repeats": same}))
    notes = [
        "Seeded alike: random, numpy.random, numba's copy of it, and PyTorch's where installed.",
    ]
    title = "Where the noise comes from"
    return [
        Figures("noise", title, NOISE_HEADINGS, rows, notes + missing),
        order(),
    ]


def repeats(draw: Callable[[], Any]) -> bool:
    """Return whether noise is the same again after all shared generators are seeded alike."""
    results = []
    draw()  # compiles
    for _ in range(2):
        _seed_everything()
        results.append([np.asarray(draw()).tobytes() for _ in range(DRAWS)])
    return results[0] == results[1]


def _seed_everything() -> None:
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002
    with contextlib.suppress(ImportError):
        _numba_seed()(SEED)
    with contextlib.suppress(ImportError):
        importlib.import_module("torch").manual_seed(SEED)


_compiled: list[Callable[[int], None]] = []


def _numba_seed() -> Callable[[int], None]:
    """Return a compiled function that seeds numba's generator, which is not NumPy's."""
    if not _compiled:
        numba = importlib.import_module("numba")

        def seed(value: int) -> None:
            np.random.seed(value)  # noqa: NPY002

        _compiled.append(numba.njit(seed))
    return _compiled[0]


def _own(turnout: Any) -> Callable[[], Any]:
    oracle = turnout.DirectEncoding(EPSILON, DOMAIN_SIZE)
    codes = np.full(DRAWS, 7)
    return lambda: oracle.randomize(codes).codes


def _pure_ldp() -> Callable[[], Any]:
    direct = importlib.import_module("pure_ldp.frequency_oracles.direct_encoding")
    client = direct.DEClient(EPSILON, DOMAIN_SIZE, index_mapper=lambda value: value)
    return lambda: client.privatise(7)


def _multi_freq_ldpy() -> Callable[[], Any]:
    direct = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR")
    return lambda: direct.GRR_Client(7, DOMAIN_SIZE, EPSILON)


def _ldp_toolbox() -> Callable[[], Any]:
    direct = importlib.import_module("ldp_toolbox.protocols.frequency.grr")
    protocol = direct.GeneralizedRandomizedResponse(DOMAIN_SIZE, EPSILON)
    return lambda: protocol.obfuscate(7)


def _opendp() -> Callable[[], Any]:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + DOMAIN_SIZE - 1.0)
    answer = dp.m.make_randomized_response(list(range(DOMAIN_SIZE)), keep)
    return lambda: answer(7)


def _diffprivlib() -> Callable[[], Any]:
    tools = importlib.import_module("diffprivlib.tools")
    codes = np.arange(30)
    return lambda: tools.histogram(codes, epsilon=EPSILON, bins=30, range=(0, 30))[0]


def _flower() -> Callable[[], Any]:
    privacy = importlib.import_module("flwr.supercore.differential_privacy")

    def draw() -> Any:
        update = [np.zeros(4)]
        privacy.add_gaussian_noise_inplace(update, 1.0)
        return update[0]

    return draw


def _opacus() -> Callable[[], Any]:
    torch = importlib.import_module("torch")
    optimizer = importlib.import_module("opacus.optimizers.optimizer")
    reference = torch.zeros(4)
    return lambda: optimizer._generate_noise(1.0, reference).numpy()


def order() -> Figures:
    """Return how often the first entry of a returned subset is the true answer."""
    makers = {
        ("multi-freq-ldpy", "SS_Client"): _multi_freq_subsets,
        ("ldp-toolbox", "SubsetSelection.obfuscate"): _toolbox_subsets,
    }
    allowed = math.exp(EPSILON) / (math.exp(EPSILON) + DOMAIN_SIZE - 1.0)
    rows, missing = [], []
    for (program, call), make in makers.items():
        try:
            respond = make()
        except ImportError as error:
            missing.append(f"{program}: not installed: {error}")
            continue
        codes = np.random.default_rng(0).integers(0, DOMAIN_SIZE, REPORTS)
        hits = sum(int(respond(code)[0]) == code for code in codes.tolist())
        # Six standard deviations above what a guess can reach at best.
        limit = REPORTS * allowed + 6.0 * math.sqrt(REPORTS * allowed)
        finding = "the order shows the answer" if hits > limit else "no more than allowed"
        share = hits / REPORTS
        cells = (program, call, f"{share:.1%}", f"{allowed:.1%}", finding)
        cells = tuple(cell.replace("%", " %") for cell in cells)
        raw = {"program": program, "call": call, "share": share, "allowed": allowed}
        rows.append(Row(cells, "", raw))
    title = (
        f"The order of a returned subset: {REPORTS:,} reports, {DOMAIN_SIZE} answers equally "
        f"frequent, epsilon {EPSILON:g}"
    )
    return Figures("order", title, ORDER_HEADINGS, rows, missing)


def _multi_freq_subsets() -> Callable[[int], Any]:
    subsets = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.SS")
    return lambda code: subsets.SS_Client(code, DOMAIN_SIZE, EPSILON)


def _toolbox_subsets() -> Callable[[int], Any]:
    subsets = importlib.import_module("ldp_toolbox.protocols.frequency.ss")
    return subsets.SubsetSelection(DOMAIN_SIZE, EPSILON).obfuscate
