"""Figures 1 to 5 of the participation paper.

Hasircioglu, Gunduz, "Privacy Amplification via Random Participation in Federated Learning".

Its figures have no numbers, and it prints neither the delta of Figures 2 and 5 nor the epsilon of
Figure 3, nor the local sizes of Figures 4 and 5. What it says in words about "the proposed scheme"
is judged twice: for its Theorem 4.1, and for the sound bound of
:class:`turnout.accounting.RandomParticipation`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from turnout._search import first_at_most
from turnout._types import Figure
from turnout.accounting import (
    CentralShuffling,
    GaussianMechanism,
    LocalSampling,
    RandomParticipation,
    WeakClientSampling,
)
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.participation_curves import SIZES, SOURCE, Axes, Values, real_delta
from turnout_reproduce.pictures import panels

#: What "almost identical", "very close" and "equivalent" are taken to mean.
_CLOSE, _EQUAL = 1.1, 1.0 + 1e-6
_DELTA: Final = 1e-6
_LEVEL: Final = 0.1
_PRODUCT: Final = 1e-4


def _order(values: Values, x: str) -> list[Finding]:
    """Judge that the scheme lies between CS and WCS and costs more for more elements."""
    outside = max(
        values.largest(above, below)[0]
        for size in SIZES
        for above, below in (
            (values.central, values.bound[size]),
            (values.bound[size], values.weak),
        )
    )
    below, where = max(values.largest(values.central, values.theorem[size]) for size in SIZES)
    found = [
        Finding.claimed(
            "the scheme lies between CS and WCS; sound bound: largest CS / bound or bound / WCS",
            outside,
            outside <= _EQUAL,
            why="it does not",
        ),
        Finding.claimed(
            f"the same of Theorem 4.1: largest CS / theorem, at {x} = {where:.3g}",
            below,
            below <= _EQUAL,
            why="its formula falls below CS, a lower bound",
        ),
        _guarantee(values, x),
    ]
    pairs = list(itertools.pairwise(SIZES))
    for name, of in (("sound bound", values.bound), ("Theorem 4.1", values.theorem)):
        fall = max(values.largest(of[small], of[large])[0] for small, large in pairs)
        found.append(
            Finding.claimed(
                f"leakage grows with d q; {name}: largest ratio of a smaller d to a larger",
                fall,
                fall <= _EQUAL,
                why="it falls with d, though a client may have gradients of zero",
            )
        )
    return found


def _guarantee(values: Values, x: str) -> Finding:
    """Compare what clients lose with what Theorem 4.1 claims."""
    false, place = max(values.largest(values.real[size], values.theorem[size]) for size in SIZES)
    return Finding.claimed(
        f"Theorem 4.1 is a guarantee: largest real client / theorem, at {x} = {place:.3g}",
        false,
        false <= _EQUAL,
        why="clients that can exist lose more",
    )


def _close(values: Values, point: float, x: str) -> list[Finding]:
    """Judge how close the scheme is to CS for few elements, and to WCS for many."""
    place = int(np.abs(values.axes.points - point).argmin())
    at = f"at {x} = {values.axes.points[place]:.3g}"
    found = []
    for size, word in ((1, "almost identical"), (10, "very close")):
        central = float(values.central[place])
        real = float(values.real[size][place]) / central
        bound = float(values.bound[size][place]) / central
        what = f"CS and the scheme are {word} for d = {size}: real client / CS {at}"
        why = f"a client that can exist loses {real:.3g} times as much, so every bound is above"
        found += [
            # Where the paper looked is not printed.
            Finding(what, real, None, None, "differs", why)
            if real > _CLOSE
            else Finding.claimed(what, real, holds=True),
            Finding.alone(f"sound bound / CS for d = {size} {at}", bound),
        ]
    for name, of in (("sound bound", values.bound), ("Theorem 4.1", values.theorem)):
        ratio = float(values.weak[place] / of[100][place])
        found.append(
            Finding.claimed(
                f"d = 100 is almost the same curve as WCS: WCS / {name} {at}",
                ratio,
                1.0 / _CLOSE <= ratio <= _CLOSE,
                why="equation (6) tends away from WCS",
            )
        )
    return found


def _reach(rates: tuple[float, float], noise: float, size: int) -> Finding:
    """Find up to which epsilon a real client is close to CS."""
    mechanism, central = RandomParticipation(*rates, size, noise), CentralShuffling(*rates, noise)
    reach = first_at_most(
        lambda epsilon: float(central.delta(epsilon)) / real_delta(mechanism, epsilon),
        1.0 / _CLOSE,
        0.0,
        1.0,
        1e-6,
    )
    what = f"a real client of d = {size} is within 10 % of CS up to epsilon"
    return Finding.alone(what, reach)


def _outcome(
    values: Values, findings: list[Finding], settings: dict[str, Any], data: str
) -> Outcome:
    common = {"local sizes": list(SIZES), "points": len(values.axes.points), "exact": True}
    return Outcome(tuple(findings), values.curves(), {**settings, **common}, data)


def _points(scale: Scale, few: int) -> int:
    return 4 * (few - 1) + 1 if scale.full else few


def _same(mechanism: Any, point: float) -> Any:
    return mechanism


def _noisy(mechanism: Any, point: float) -> Any:
    return mechanism.replace(noise_multiplier=point)


def _kept_product(mechanism: Any, point: float) -> Any:
    """Change the sample rate, and the client rate so that the product stays."""
    if isinstance(mechanism, LocalSampling):
        return mechanism.replace(sample_rate=point)
    return mechanism.replace(sample_rate=point, client_rate=min(1.0, _PRODUCT / point))


def _figure_1(scale: Scale) -> Outcome:
    # Denser where the curves part.
    points = 2.0 * np.linspace(0.0, 1.0, _points(scale, 25)) ** 2
    axes = Axes(points, _same, lambda point: point, epsilon=False)
    values = Values.of(axes, (0.1, 0.1), 1.0, scale)
    return _outcome(
        values,
        [
            *_order(values, "epsilon"),
            *_close(values, 0.5, "epsilon"),
            *(_reach((0.1, 0.1), 1.0, size) for size in (1, 10)),
        ],
        {"client rate": 0.1, "sample rate": 0.1, "noise": 1.0},
        "Computed without chance.",
    )


def _against_noise(scale: Scale, fixed: str, level: float) -> Outcome:
    """Figures 2 and 3: the other of epsilon and delta against the noise."""
    points = np.geomspace(0.5, 8.0, _points(scale, 17))
    axes = Axes(points, _noisy, lambda _: level, epsilon=fixed == "delta")
    values = Values.of(axes, (0.1, 0.1), 1.0, scale)
    return _outcome(
        values,
        _order(values, "sigma") + _close(values, 1.0, "sigma"),
        {"client rate": 0.1, "sample rate": 0.1, fixed: level},
        f"Computed without chance. The paper prints no {fixed}; {level:g} is ours.",
    )


def _figure_2(scale: Scale) -> Outcome:
    return _against_noise(scale, "delta", _DELTA)


def _figure_3(scale: Scale) -> Outcome:
    return _against_noise(scale, "epsilon", _LEVEL)


def _figure_4(scale: Scale) -> Outcome:
    points = 0.4 * np.linspace(0.0, 1.0, _points(scale, 25)) ** 2
    axes = Axes(points, _same, lambda point: point, epsilon=False)
    values = Values.of(axes, (0.1, 0.1), 3.0, scale)
    alone = GaussianMechanism(3.0)
    spent = [
        Finding.alone(f"epsilon of {name} at delta = 1e-6", float(mechanism.epsilon(_DELTA)))
        for name, mechanism in (
            ("central shuffling", CentralShuffling(0.1, 0.1, 3.0)),
            *((f"the sound bound, d = {d}", RandomParticipation(0.1, 0.1, d, 3.0)) for d in SIZES),
            ("weak client sampling", WeakClientSampling(0.1, 0.1, 3.0)),
            ("only local sampling", LocalSampling(0.1, 3.0)),
            ("noise of sigma = 3 on one gradient alone", alone),
        )
    ]
    return _outcome(
        values,
        _order(values, "epsilon") + spent,
        {"client rate": 0.1, "sample rate": 0.1, "noise": 3.0},
        "Computed without chance. The curve of Balle et al. is left out: it needs numbers of "
        "clients and of steps, and a split of the noise, which the paper does not print.",
    )


def _figure_5(scale: Scale) -> Outcome:
    points = np.geomspace(_PRODUCT, 1.0, _points(scale, 17))
    axes = Axes(points, _kept_product, lambda _: _DELTA, epsilon=True)
    values = Values.of(axes, (1.0, _PRODUCT), 1.0, scale)
    schemes = {
        "CS": values.central,
        **{f"sound bound, d = {d}": values.bound[d] for d in SIZES},
        "WCS": values.weak,
        "OLS": values.local,
    }
    first = [float(of[0]) for of in schemes.values()]
    claimed = [float(values.theorem[d][0]) for d in SIZES]
    ratios = {
        "sound bounds and baselines": max(first) / min(first),
        "OLS / Theorem 4.1, d = 100": first[-1] / claimed[-1],
    }
    some = int(np.abs(points - 0.1).argmin())
    gains = [float(values.bound[100][i] / values.bound[1][i]) for i in (0, some)]
    limit = float(values.weak[-1] / values.bound[100][-1])
    findings = [
        *(
            Finding.claimed(
                f"every scheme gets worse as q grows; {name}: epsilon at q = 1 over that at "
                "q = 1e-4",
                float(of[-1] / of[0]),
                bool(of[-1] > of[0] * _EQUAL and (of[1:] >= of[:-1] / _EQUAL).all()),
                why="CS depends on p q alone",
            )
            for name, of in schemes.items()
        ),
        *(
            Finding.claimed(
                f"at p = 1 all schemes are equivalent; {name}: ratio of epsilons",
                ratio,
                1.0 / _EQUAL <= ratio <= _EQUAL,
                why="at p = 1 equation (6) is below plain Poisson sampling, which is exact",
            )
            for name, ratio in ratios.items()
        ),
        Finding.claimed(
            "small d is more favourable at larger q: bound at d = 100 over that at d = 1, q = 0.1",
            gains[1],
            gains[1] > max(1.0, gains[0]),
            why="it is not",
        ),
        Finding.claimed(
            "the scheme converges to WCS at large q: WCS / bound at d = 100, q = 1",
            limit,
            limit <= _CLOSE,
            why="it does not",
        ),
        _guarantee(values, "q"),
    ]
    return _outcome(
        values,
        findings,
        {"p q": _PRODUCT, "noise": 1.0, "delta": _DELTA},
        "Computed without chance. The paper prints neither delta nor the local sizes; 1e-6 and "
        "those of Figure 1 are ours.",
    )


def _finish(figure: Figure, *, x: str, wide: bool) -> None:
    colours = {f"d = {size}": f"C{place}" for place, size in enumerate(SIZES)}
    plain = {
        "only local sampling": ("0.55", ":"),
        "weak client sampling": ("0.1", "-."),
        "central shuffling": ("0.1", ":"),
    }
    for ax in figure.axes:
        for line in ax.get_lines():
            kind, _, size = str(line.get_label()).partition(", ")
            colour, style = plain.get(kind, (colours.get(size, "0.1"), "-"))
            if kind == "real client":
                line.set(marker=".", markersize=4, linewidth=0)
            line.set(color=colour, linestyle="--" if kind == "Theorem 4.1" else style)
            if kind in plain:
                line.set(zorder=3)  # They can lie on a bound.
        if wide:
            ax.set_xscale("log")
            if "noise" in x:
                ax.set_xticks([0.5, 1.0, 2.0, 4.0, 8.0])
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
        ax.legend(frameon=False, fontsize="x-small", loc="upper left", bbox_to_anchor=(0, -0.16),
                  ncols=2)  # fmt: skip
    figure.axes[1].set_xlim(figure.axes[0].get_xlim())
    figure.set_size_inches(10.0, 6.0)
    figure.tight_layout(rect=(0, 0.05, 1, 1))


_EPSILON_WORDS: Final = "epsilon of a round"
_DELTA_WORDS: Final = "delta of a round"
_NOISE_WORDS: Final = "noise sigma / C"


def _experiment(
    number: int, shows: str, run: Callable[[Scale], Outcome], words: tuple[str, str], wide: bool
) -> Experiment:
    title = f"Participation paper, Figure {number}: {shows}"
    finish = functools.partial(_finish, x=words[0], wide=wide)
    return Experiment(
        f"participation/figure-{number}",
        shows[0].upper() + shows[1:],
        f"{SOURCE}, Figure {number}",
        run,
        functools.partial(panels, title=title, x=words[0], y=words[1], log="y", finish=finish),
    )


EXPERIMENTS: Final = (
    _experiment(
        1, "delta against epsilon", _figure_1, (_EPSILON_WORDS, _DELTA_WORDS), wide=False
    ),
    _experiment(
        2, "epsilon against noise", _figure_2, (_NOISE_WORDS, _EPSILON_WORDS), wide=True
    ),
    _experiment(3, "delta against noise", _figure_3, (_NOISE_WORDS, _DELTA_WORDS), wide=True),
    _experiment(
        4, "delta against epsilon at sigma = 3", _figure_4, (_EPSILON_WORDS, _DELTA_WORDS),
        wide=False,
    ),
    _experiment(
        5, "epsilon against q at p q = 1e-4", _figure_5, ("sample rate q", _EPSILON_WORDS),
        wide=True,
    ),
)  # fmt: skip
