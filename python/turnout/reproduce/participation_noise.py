"""The noise levels that the participation paper prints for its two experiments.

Hasircioglu, Gunduz, "Privacy Amplification via Random Participation in Federated Learning",
sections 6.1 and 6.2.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Final

from turnout._types import Figure
from turnout.accounting import LocalSampling, WeakClientSampling
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.paper import theorem_4_1_delta
from turnout.accounting.participation import RandomParticipation
from turnout.federated.scenarios import Scenario, arms_of
from turnout.reproduce.outcome import Curve, Experiment, Finding, Outcome, Scale
from turnout.reproduce.participation_curves import SOURCE, real_delta
from turnout.reproduce.pictures import panels

#: What a round may cost in both experiments.
EPSILON, DELTA = 0.015, 1e-6
_SCHEMES: Final = ("proposed", "WCS", "OLS")


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of the paper: who takes part, and what it prints.

    Attributes
    ----------
    number
        Its number.
    scenario
        Who takes part.
    noise
        The printed noise of each scheme and the unit of its last digit.
    """

    number: str
    scenario: Scenario
    noise: Mapping[str, tuple[float, float]]


SECTIONS: Final = (
    Section(
        "6.1", Scenario("many clients", 23264, 30, 0.001, 0.1),
        {"proposed": (1.065, 1e-3), "WCS": (7.65, 1e-2), "OLS": (22.4, 1e-1)},
    ),
    Section(
        "6.2", Scenario("few clients", 697, 1000, 0.1, 0.001),
        {"proposed": (0.646, 1e-3), "WCS": (0.873, 1e-3), "OLS": (1.103, 1e-3)},
    ),
)  # fmt: skip
_BATCH: Final = 70.0


def _run(scale: Scale) -> Outcome:
    findings: list[Finding] = []
    curves: list[Curve] = []
    for printed in SECTIONS:
        needed = _needed(printed)
        findings += _proposed(printed, needed)
        findings += _baselines(printed, needed)
        batch = printed.scenario.average_batch
        findings.append(
            Finding.compared(f"{printed.number}: average batch", batch, _BATCH, tolerance=0.5)
        )
        places = tuple(float(place) for place in range(len(_SCHEMES)))
        panel = f"section {printed.number}: {printed.scenario.name}"
        given = tuple(printed.noise[scheme][0] for scheme in _SCHEMES)
        ours = tuple(needed[scheme] for scheme in ("sound", "wcs", "ols"))
        curves.append(Curve("printed", places, given, panel=panel))
        curves.append(Curve("needed", places, ours, panel=panel))
        if "unsound" in needed:
            curves.append(
                Curve("asked for by equation (6)", (0.0,), (needed["unsound"],), panel=panel)
            )
    return Outcome(
        tuple(findings),
        tuple(curves),
        {
            "epsilon": EPSILON,
            "delta": DELTA,
            "scenarios": {
                printed.number: dataclasses.asdict(printed.scenario) for printed in SECTIONS
            },
            "exact": True,
        },
        "Computed without chance, for epsilon = 0.015 and delta = 1e-6 in each round.",
    )


def _needed(printed: Section) -> dict[str, float]:
    """Give the noise that each analysis asks for; none for Theorem 4.1 where it asks for none."""
    wanted = dict.fromkeys(("unsound", "sound", "wcs", "ols"), 1.0)
    arms = arms_of(printed.scenario, EPSILON, DELTA, wanted)
    return {arm.name: arm.noise_multiplier for arm in arms}


def _proposed(printed: Section, needed: Mapping[str, float]) -> list[Finding]:
    """Judge the printed noise of Theorem 4.1."""
    section = printed.number
    noise, unit = printed.noise["proposed"]
    who = printed.scenario
    rates, size = (who.client_rate, who.sample_rate), who.local_size
    mechanism = RandomParticipation(*rates, size, noise)
    real, bound = real_delta(mechanism, EPSILON), float(mechanism.delta(EPSILON))
    claimed = float(theorem_4_1_delta(EPSILON, *rates, size, noise))
    found = [
        Finding.compared(
            f"{section}, proposed: noise that the sound bound needs",
            needed["sound"],
            noise,
            tolerance=unit,
            wrong=f"Theorem 4.1 is no bound: at {noise} a client that can exist has delta "
            f"{real:.3g}",
        )
    ]
    if "unsound" in needed:
        found.append(
            Finding.compared(
                f"{section}, proposed: noise that equation (6) asks for",
                needed["unsound"],
                noise,
                tolerance=unit,
                wrong=f"the printed noise does not solve equation (6), whose delta is "
                f"{claimed:.3g} there",
            )
        )
    else:
        found.append(
            Finding.compared(
                f"{section}, proposed: delta of equation (6) at {noise}",
                claimed,
                DELTA,
                wrong="the printed noise does not solve equation (6), which is below 1e-6 for "
                "every noise that was tried and so asks for none",
            )
        )
    return [
        *found,
        Finding.compared(
            f"{section}, proposed: delta of a client that can exist at {noise}, at least",
            real,
            DELTA,
            wrong=f"the printed noise does not keep delta: {real / DELTA:.3g} times as much",
        ),
        Finding.alone(f"{section}, proposed: sound bound of delta at {noise}", bound),
    ]


def _baselines(printed: Section, needed: Mapping[str, float]) -> list[Finding]:
    """Judge the printed noise of weak client sampling and only local sampling."""
    found, who = [], printed.scenario
    kinds: tuple[tuple[str, Mechanism], ...] = (
        ("WCS", WeakClientSampling(who.client_rate, who.sample_rate, 1.0)),
        ("OLS", LocalSampling(who.sample_rate, 1.0)),
    )
    for scheme, mechanism in kinds:
        noise, unit = printed.noise[scheme]
        spent = float(mechanism.replace(noise_multiplier=noise).delta(EPSILON))
        found += [
            Finding.compared(
                f"{printed.number}, {scheme}: noise needed",
                needed[scheme.lower()],
                noise,
                tolerance=unit,
            ),
            Finding.compared(
                f"{printed.number}, {scheme}: delta at {noise}",
                spent,
                DELTA,
                wrong=f"the printed noise is below what is needed: delta is missed by "
                f"{spent / DELTA - 1:.1%}",
            ),
        ]
    return found


def _finish(figure: Figure) -> None:
    marks = {"printed": ("x", "C3"), "needed": ("o", "C0")}
    for ax in figure.axes:
        for line in ax.get_lines():
            mark, colour = marks.get(str(line.get_label()), ("^", "C1"))
            line.set(marker=mark, color=colour, markersize=7, linewidth=0, fillstyle="none")
        ax.set_xticks(range(len(_SCHEMES)), _SCHEMES)
        ax.set_xlim(-0.4, len(_SCHEMES) - 0.6)
        ax.set_yticks([0.5, 1, 2, 5, 10, 20])
        ax.yaxis.minorticks_off()
        ax.legend(frameon=False, fontsize="small", loc="upper left")


EXPERIMENTS: Final = (
    Experiment(
        "participation/noise-levels",
        "Noise for epsilon = 0.015 and delta = 1e-6 in each round",
        f"{SOURCE}, sections 6.1 and 6.2",
        _run,
        functools.partial(
            panels,
            title="Participation paper, sections 6.1 and 6.2: noise levels",
            x="scheme",
            y="noise sigma / C",
            log=True,
            finish=_finish,
        ),
    ),
)
