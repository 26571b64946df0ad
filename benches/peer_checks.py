"""What reports and noise of the installed packages show, found by running them.

Two checks. The first seeds every generator that a Python program shares (``random``, NumPy's,
numba's, PyTorch's) twice in the same way and asks for noise after each: if it is the same, the
noise comes from such a generator, which is not cryptographic and which any other part of the
program may seed. The second is an audit: it counts how often a report is of one kind for each of
two persons, and computes from the counts the least epsilon that they are compatible with. A
protocol whose stated epsilon is smaller does not keep it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from report import Figures, Row

EPSILON, DOMAIN_SIZE = 1.0, 100
#: The chance that an audit accuses a protocol that keeps its epsilon.
ALPHA = 1e-6
DRAWS_OF_ONE, DRAWS_OF_TEN = 20_000, 3_000
#: People who are asked again: how often, what one report and what all of them may cost.
TIMES, FIRST_EPSILON, LIFETIME_EPSILON = 10, 1.0, 2.0
SEED = 20_261_122

NOISE_HEADINGS = ("program", "call", "repeats after seeding", "finding")
AUDIT_HEADINGS = ("program", "call", "what is counted", "stated epsilon", "at least", "finding")
#: The events that are counted.
MOST = 7
FIRST = "the first entry of the subset is answer 0"
BOTH = "both answers are reported as 0"
AGAIN = f"{MOST} or more of {TIMES} reports of one person are 0"
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
        "The same seed goes to random, numpy.random, numba's copy of it, and PyTorch if it is "
        "installed.",
    ]
    title = "Where the noise comes from"
    return [
        Figures("noise", title, NOISE_HEADINGS, rows, notes + missing),
        audits(turnout),
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


# Audits -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Audit:
    """A call, the event that is counted, and how many of so many draws of a person show it."""

    program: str
    call: str
    event: str
    epsilon: float
    draws: int
    count: Callable[[int, int], int]


def audits(turnout: Any) -> Figures:
    """Return the least epsilon that the reports of each protocol are compatible with."""
    made, missing = [] if turnout is None else _own_audits(turnout), []
    for program, make in (
        ("multi-freq-ldpy", _multi_freq_audits),
        ("ldp-toolbox", _toolbox_audits),
    ):
        try:
            made += make()
        except ImportError as error:
            missing.append(f"{program}: not installed: {error}")
    rows = []
    for one in made:
        one.count(0, 10)  # compiles
        least = least_epsilon(one.count(0, one.draws), one.count(1, one.draws), one.draws)
        finding = "more than is stated" if least > one.epsilon else "nothing found"
        cells = (one.program, one.call, one.event, f"{one.epsilon:g}", f"{least:.2f}", finding)
        raw = {
            "program": one.program,
            "call": one.call,
            "epsilon": one.epsilon,
            "least": least,
            "draws": one.draws,
        }
        rows.append(Row(cells, "", raw))
    notes = [
        "at least: a lower bound of epsilon, which the counts of two people with different answers "
        f"prove. It is wrong with probability {ALPHA:g}. If nothing is found, a leak may still "
        "exist.",
        f"Subsets are of {DOMAIN_SIZE} answers. Two questions have two answers each. People who "
        f"are asked {TIMES} times have two answers.",
    ]
    return Figures("audit", "What reports prove of epsilon", AUDIT_HEADINGS, rows, notes + missing)


def least_epsilon(often: int, seldom: int, draws: int) -> float:
    """Return the least epsilon of two counts, by Clopper and Pearson's limits.

    Parameters
    ----------
    often, seldom
        How many of the reports of either person showed the event.
    draws
        How many reports each of them gave.
    """
    stats = importlib.import_module("scipy.stats")
    low = stats.beta.ppf(ALPHA / 2, often, draws - often + 1) if often > 0 else 0.0
    high = stats.beta.ppf(1.0 - ALPHA / 2, seldom + 1, draws - seldom) if seldom < draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0.0 else 0.0


def _own_audits(turnout: Any) -> list[Audit]:
    attributes = importlib.import_module("turnout.frequency.attributes")
    sampled = attributes.SampledAttribute(EPSILON, {"a": 2, "b": 2}, padding="fake")
    memoized = turnout.Memoized(
        turnout.DirectEncoding(LIFETIME_EPSILON, 2), first_epsilon=FIRST_EPSILON
    )

    def both(answer: int, draws: int) -> int:
        answers = np.full(draws, answer)
        made = sampled.by_attribute(sampled.randomize({"a": answers, "b": answers}))
        return int(((made["a"].codes == 0) & (made["b"].codes == 0)).sum())

    def again(answer: int, draws: int) -> int:
        clients = (memoized.client(max_values=1) for _ in range(draws))
        return sum(
            sum(int(client.report(answer)) == 0 for _ in range(TIMES)) >= MOST for client in clients
        )

    return [
        Audit("turnout", "SampledAttribute, fake", BOTH, EPSILON, DRAWS_OF_ONE, both),
        Audit("turnout", "Memoized.client", AGAIN, LIFETIME_EPSILON, DRAWS_OF_TEN, again),
    ]


def _multi_freq_audits() -> list[Audit]:
    name = "multi-freq-ldpy"
    subsets = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.SS")
    several = importlib.import_module("multi_freq_ldpy.mdim_freq_est.RSpFD_solution")
    again = importlib.import_module("multi_freq_ldpy.long_freq_est.L_GRR")

    def first(answer: int, draws: int) -> int:
        made = (subsets.SS_Client(answer, DOMAIN_SIZE, EPSILON) for _ in range(draws))
        return sum(int(one[0]) == 0 for one in made)

    def both(answer: int, draws: int) -> int:
        asked = [answer, answer]
        made = (several.RSpFD_GRR_Client(asked, [2, 2], 2, EPSILON) for _ in range(draws))
        return sum(one[0] == 0 and one[1] == 0 for one in made)

    def most(answer: int, draws: int) -> int:
        def report() -> int:
            return int(again.L_GRR_Client(answer, 2, LIFETIME_EPSILON, FIRST_EPSILON))

        return sum(sum(report() == 0 for _ in range(TIMES)) >= MOST for _ in range(draws))

    return [
        Audit(name, "SS_Client", FIRST, EPSILON, DRAWS_OF_ONE, first),
        Audit(name, "RSpFD_GRR_Client", BOTH, EPSILON, DRAWS_OF_ONE, both),
        Audit(name, "L_GRR_Client", AGAIN, LIFETIME_EPSILON, DRAWS_OF_TEN, most),
    ]


def _toolbox_audits() -> list[Audit]:
    subsets = importlib.import_module("ldp_toolbox.protocols.frequency.ss")
    protocol = subsets.SubsetSelection(DOMAIN_SIZE, EPSILON)

    def first(answer: int, draws: int) -> int:
        return sum(int(protocol.obfuscate(answer)[0]) == 0 for _ in range(draws))

    call = "SubsetSelection.obfuscate"
    return [Audit("ldp-toolbox", call, FIRST, EPSILON, DRAWS_OF_ONE, first)]
