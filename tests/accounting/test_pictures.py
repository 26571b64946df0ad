"""Pictures show what the mechanisms compute, and the paper's curve beside it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import turnout as tn
from turnout.accounting import (
    CentralShuffling,
    CountSampling,
    DiscreteLaplaceNoise,
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    Shuffled,
    WeakClientSampling,
    paper,
)
from turnout.accounting.pictures import plot
from turnout.errors import InvalidTypeError, InvalidValueError, MissingExtraError

mpl.use("Agg")

CLAIM = "Theorem 4.1 (not a bound)"
SMALL, LARGE = (RandomParticipation(0.1, 0.1, size, 1.0) for size in (1, 10))
WEAK, LOCAL = WeakClientSampling(0.1, 0.1, 1.0), LocalSampling(0.1, 1.0)
CENTRAL = CentralShuffling(0.1, 0.1, 1.0)
FIGURE: list[Mechanism] = [CENTRAL, SMALL, LARGE, WEAK, LOCAL]

#: What can stand along a picture, with what it needs beside the mechanisms.
PICTURES: dict[str, Callable[..., Any]] = {
    "delta": plot,
    "delta_against_noise": partial(
        plot, x="noise_multiplier", y="delta", at=0.5, points=[0.5, 1.0, 2.0]
    ),
    "epsilon_against_noise": partial(
        plot, x="noise_multiplier", y="epsilon", at=1e-5, points=[0.5, 1.0, 2.0]
    ),
    "epsilon_against_rounds": partial(
        plot, x="rounds", y="epsilon", at=1e-5, points=[1, 10], lower=False
    ),
    "epsilon_against_sample_rate": partial(
        plot, x="sample_rate", y="epsilon", at=1e-5, points=[0.01, 0.1, 1.0]
    ),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def solid(axes: Any) -> dict[str, Any]:
    """The curves of the mechanisms, by their labels."""
    return {
        line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")
    }


def dashed(axes: Any) -> list[Any]:
    return [line for line in axes.get_lines() if line.get_label().startswith("_")]


def values(line: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(line.get_ydata(), dtype=np.float64)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_labels_its_axes_and_curves(name: str) -> None:
    axes = PICTURES[name](FIGURE)
    assert axes.get_xlabel()
    assert axes.get_ylabel().endswith("(add or remove one)")
    assert axes.get_yscale() == "log"
    names = [
        "central shuffling (not a guarantee)",
        "random participation, d = 1",
        "random participation, d = 10",
        "weak client sampling",
        "only local sampling",
    ]
    assert list(solid(axes)) == names
    assert legend(axes) == names + ([] if name == "epsilon_against_rounds" else [CLAIM])


@pytest.mark.parametrize("name", PICTURES)
def test_the_legend_of_new_axes_stands_beside_them(name: str) -> None:
    axes = PICTURES[name](FIGURE)
    figure = axes.figure
    figure.canvas.draw()
    box = axes.get_legend().get_window_extent()
    assert not box.overlaps(axes.get_window_extent())
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("name", PICTURES)
def test_given_axes_are_drawn_on_and_returned(name: str) -> None:
    _, ax = plt.subplots()
    assert PICTURES[name]([LARGE], ax=ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", PICTURES)
def test_labels_come_from_a_dict_or_an_argument(name: str) -> None:
    assert list(solid(PICTURES[name]({"ours": LARGE, "theirs": LOCAL}))) == ["ours", "theirs"]
    assert list(solid(PICTURES[name]([LARGE, LOCAL], labels=("a", "b")))) == ["a", "b"]
    assert list(solid(PICTURES[name](LARGE))) == ["random participation"]


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("word", ["add", "remove"])
def test_an_adjacency_is_passed_on_and_shown(name: str, word: str) -> None:
    axes, other = PICTURES[name](LARGE, adjacency=word), PICTURES[name](LARGE)
    assert axes.get_ylabel().endswith(f"({word} one)")
    (line,), (larger,) = solid(axes).values(), solid(other).values()
    if name != "delta":
        assert (values(line) <= values(larger) * (1.0 + 1e-9)).all()
        assert word == "remove" or (values(line) < 0.99 * values(larger)).any()


def test_delta_is_that_of_the_mechanisms() -> None:
    points = np.linspace(0.0, 2.0, 9)
    axes = plot(FIGURE, points=points)
    for line, mechanism in zip(solid(axes).values(), FIGURE, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), points)
        np.testing.assert_array_equal(values(line), mechanism.delta(points))
    assert axes.get_xlim() == (0.0, 2.0)
    assert axes.get_title() == "p = 0.1, q = 0.1, σ = 1"


def test_delta_against_noise_is_that_of_the_mechanisms() -> None:
    points = [0.7, 1.4, 2.8]
    axes = plot(FIGURE, "noise_multiplier", "delta", at=0.3, points=points)
    for line, mechanism in zip(solid(axes).values(), FIGURE, strict=True):
        expected = [mechanism.replace(noise_multiplier=noise).delta(0.3) for noise in points]
        assert values(line).tolist() == expected
    assert axes.get_title() == "p = 0.1, q = 0.1"
    assert axes.get_ylabel() == "δ at ε = 0.3 (add or remove one)"


def test_epsilon_against_noise_is_that_of_the_mechanisms() -> None:
    points = [0.7, 1.4, 2.8]
    axes = plot(FIGURE, "noise_multiplier", "epsilon", at=1e-6, points=points)
    for line, mechanism in zip(solid(axes).values(), FIGURE, strict=True):
        expected = [mechanism.replace(noise_multiplier=noise).epsilon(1e-6) for noise in points]
        assert values(line).tolist() == expected
    assert axes.get_ylabel() == "ε at δ = 1e-06 (add or remove one)"


def test_epsilon_against_the_sample_rate_keeps_the_batch() -> None:
    axes = plot([LARGE, LOCAL, CENTRAL], "sample_rate", "epsilon", at=1e-5, points=[0.01, 0.1, 0.5])
    ours, local, central = (values(line).tolist() for line in solid(axes).values())
    pairs = [(1.0, 0.01), (0.1, 0.1), (0.02, 0.5)]
    expected = [RandomParticipation(p, q, 10, 1.0).epsilon(1e-5) for p, q in pairs]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert local == [LOCAL.replace(sample_rate=q).epsilon(1e-5) for _, q in pairs]
    np.testing.assert_allclose(central, central[0], rtol=1e-9)
    # Where all clients take part, all schemes are one.
    np.testing.assert_allclose([ours[0], central[0]], local[0], rtol=1e-9)
    assert axes.get_title() == "d = 10, σ = 1; p q = 0.01"


def test_rates_above_one_are_not_drawn() -> None:
    axes = plot([LARGE], "sample_rate", "epsilon", at=1e-5, points=[0.001, 0.1])
    (line,) = solid(axes).values()
    assert np.isnan(values(line)).tolist() == [True, False]


def test_epsilon_against_rounds_is_that_of_the_composition() -> None:
    points = [1, 7, 50]
    axes = plot([WEAK, LOCAL], "rounds", "epsilon", at=1e-5, points=points)
    for line, mechanism in zip(solid(axes).values(), (WEAK, LOCAL), strict=True):
        expected = [mechanism.compose(rounds).epsilon(1e-5) for rounds in points]
        assert values(line).tolist() == expected
    bands = [band.get_paths()[0].vertices for band in axes.collections]
    assert len(bands) == 2
    for band, mechanism in zip(bands, (WEAK, LOCAL), strict=True):
        low, high = mechanism.compose(50).epsilon_bounds(1e-5)
        heights = [y for x, y in band if x == 50]
        assert (min(heights), max(heights)) == (low, high)
    assert legend(axes) == ["weak client sampling", "only local sampling"]


def test_lower_values_can_be_left_out() -> None:
    axes = plot(LOCAL, "rounds", "epsilon", at=1e-5, points=[1, 7], lower=False)
    assert len(axes.collections) == 0
    assert "bands" not in axes.get_title()


def test_the_papers_curve_is_its_theorem_dashed_in_the_colour_of_ours() -> None:
    points = np.linspace(0.0, 2.0, 9)
    axes = plot(FIGURE, points=points)
    ours = [solid(axes)[f"random participation, d = {size}"] for size in (1, 10)]
    for line, theirs, size in zip(ours, dashed(axes), (1, 10), strict=True):
        claimed = np.asarray(paper.theorem_4_1_delta(points, 0.1, 0.1, size, 1.0))
        np.testing.assert_array_equal(values(theirs), claimed)
        assert theirs.get_linestyle() == "--"
        assert theirs.get_color() == line.get_color()
        assert (claimed < values(line)).all()


def test_the_papers_curve_against_noise_solves_its_theorem() -> None:
    axes = plot([LARGE], "noise_multiplier", "epsilon", at=1e-5, points=[0.7, 1.4])
    (line,) = dashed(axes)
    for epsilon, noise in zip(values(line), (0.7, 1.4), strict=True):
        claimed = paper.theorem_4_1_delta(float(epsilon), 0.1, 0.1, 10, noise)
        assert claimed == pytest.approx(1e-5, rel=1e-3)
    axes = plot([LARGE], "noise_multiplier", "delta", at=0.5, points=[0.7, 1.4])
    (line,) = dashed(axes)
    assert values(line).tolist() == [
        paper.theorem_4_1_delta(0.5, 0.1, 0.1, 10, noise) for noise in (0.7, 1.4)
    ]


@pytest.mark.parametrize("name", sorted(set(PICTURES) - {"epsilon_against_rounds"}))
def test_the_papers_curve_can_be_left_out_and_others_have_none(name: str) -> None:
    for axes in (PICTURES[name](FIGURE, paper=False), PICTURES[name]([WEAK, LOCAL, CENTRAL])):
        assert dashed(axes) == []
        assert CLAIM not in legend(axes)


def test_delta_can_be_drawn_against_everything_else() -> None:
    axes = plot([LARGE], "rounds", at=0.5, points=[1, 5])
    (line,) = solid(axes).values()
    assert values(line).tolist() == [LARGE.compose(count).delta(0.5) for count in (1, 5)]
    assert axes.get_ylabel() == "δ at ε = 0.5 (add or remove one)"
    (line,) = solid(plot([LOCAL], "sample_rate", at=0.5, points=[0.1, 0.2])).values()
    assert values(line).tolist() == [LOCAL.replace(sample_rate=q).delta(0.5) for q in (0.1, 0.2)]


def test_where_the_theorem_claims_nothing_no_curve_is_dashed() -> None:
    idle, huge = LARGE.replace(client_rate=0.0), LARGE.replace(local_size=10**9)
    assert dashed(plot([LARGE, idle], points=[0.1, 0.2])) != []
    assert dashed(plot([idle, huge], points=[0.1, 0.2])) == []


def test_what_guarantees_nothing_is_dotted() -> None:
    styles = [line.get_linestyle() for line in solid(plot(FIGURE)).values()]
    assert styles == [":", "-", "-", "-", "-"]


def test_default_epsilons_reach_where_every_curve_is_tiny() -> None:
    near = plot([LARGE, LOCAL])
    assert near.get_xscale() == "linear"
    assert near.get_xlim() == (0.0, pytest.approx(LOCAL.epsilon(1e-12)))
    far = plot([CentralShuffling(0.001, 0.1, 2.5), LocalSampling(0.1, 2.5)])
    assert far.get_xscale() == "log"
    for line in solid(far).values():
        assert values(line)[0] > 1e-7
        assert values(line)[-1] < 1.1e-12


def test_default_noise_shows_no_empty_room() -> None:
    axes = plot([LOCAL], "noise_multiplier", "delta", at=0.5)
    right = axes.get_xlim()[1]
    assert LOCAL.replace(noise_multiplier=right).delta(0.5) < 1e-12
    assert LOCAL.replace(noise_multiplier=0.9 * right).delta(0.5) > 1e-12
    wide = plot([GaussianMechanism(40.0)], "noise_multiplier", "epsilon", at=1e-5)
    assert wide.get_xlim() == (0.5, pytest.approx(80.0))


def test_a_curve_that_ends_drops_to_the_bottom() -> None:
    axes = plot([DiscreteLaplaceNoise(scale=2.0)], points=[0.5, 0.9, 1.1, 2.0])
    (line,) = solid(axes).values()
    assert (values(line) > axes.get_ylim()[0]).tolist() == [True, True, False, False]


def test_mechanisms_with_other_neighbours_say_so_in_the_legend() -> None:
    shuffled = Shuffled(tn.DirectEncoding(1.0, 4), 1000)
    axes = plot([GaussianMechanism(3.0), shuffled, CountSampling(0.5, 30)])
    assert legend(axes) == [
        "Gaussian noise (add or remove one)",
        "shuffled reports (replace one)",
        "sampled counts (replace one)",
    ]
    assert axes.get_ylabel() == "δ"
    assert plot([shuffled], points=[0.0, 0.1]).get_ylabel() == "δ (replace one)"


def test_more_mechanisms_than_colours_all_look_different() -> None:
    axes = plot([LARGE.replace(local_size=size) for size in range(12)], paper=False)
    assert len({mpl.colors.to_hex(line.get_color()) for line in axes.get_lines()}) == 12


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(
    ("mechanisms", "more", "error", "message"),
    [
        ([], {}, InvalidValueError, "mechanisms must be .* got none"),
        ({}, {}, InvalidValueError, "mechanisms must be .* got none"),
        (7, {}, InvalidTypeError, "mechanisms must be .* got 7"),
        ("LARGE", {}, InvalidTypeError, "mechanisms must be"),
        ([LARGE, 1.0], {}, InvalidTypeError, r"mechanisms must be .* got 1\.0"),
        ([LARGE], {"labels": []}, InvalidValueError, "one text for each of the 1 mechanisms"),
        ([LARGE], {"labels": [1]}, InvalidValueError, "labels must be"),
        ([LARGE], {"labels": "x"}, InvalidTypeError, "labels must be"),
        ([LARGE], {"adjacency": "swap"}, InvalidValueError, "adjacency must be .* got 'swap'"),
        ([LARGE], {"ax": "axes"}, InvalidTypeError, "ax must be matplotlib axes"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_drawn(
    name: str, mechanisms: Any, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PICTURES[name](mechanisms, **more)
    assert plt.get_fignums() == []


NAN = math.nan


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plot(LARGE, "nodes"), InvalidValueError, "x must be .* got 'nodes'"),
        (lambda: plot(LARGE, y="rmse"), InvalidValueError, "y must be .* got 'rmse'"),
        (lambda: plot(LARGE, y="epsilon"), InvalidValueError, "y must be 'delta' where x"),
        (lambda: plot(LARGE, at=0.1), InvalidValueError, "at must be left out"),
        (lambda: plot(LARGE, "rounds"), InvalidTypeError, "at .of epsilon. must be .* got None"),
        (lambda: plot(LARGE, points=[0.1]), InvalidValueError, "points must be two or more"),
        (lambda: plot(LARGE, points=[-0.1, 0.1]), InvalidValueError, "points must be"),
        (lambda: plot(LARGE, points=[0.1, math.inf]), InvalidValueError, "points must be"),
        (lambda: plot(LARGE, points="ab"), InvalidTypeError, "points must be"),
        (lambda: plot(LARGE, points=[[0.1, 0.2]]), InvalidTypeError, "points must be"),
        (
            lambda: plot(LARGE, "noise_multiplier", "delta", at=-1.0),
            InvalidValueError,
            r"at \(of epsilon\) must be",
        ),
        (
            lambda: plot(LARGE, "noise_multiplier", "delta", at=math.inf),
            InvalidValueError,
            "and finite",
        ),
        (
            lambda: plot(LARGE, "noise_multiplier", "delta", at=NAN),
            InvalidValueError,
            r"at \(of epsilon\) must be",
        ),
        (
            lambda: plot(LARGE, "noise_multiplier", "delta", at="1"),
            InvalidTypeError,
            r"at \(of epsilon\) must be",
        ),
        (
            lambda: plot(LARGE, "noise_multiplier", "delta", at=1.0, points=[0.0, 1.0]),
            InvalidValueError,
            "points must be .* above 0",
        ),
        (
            lambda: plot(CountSampling(0.5, 9), "noise_multiplier", "delta", at=1.0),
            InvalidTypeError,
            "mechanisms must have a noise_multiplier, got CountSampling",
        ),
        (
            lambda: plot(LARGE, "noise_multiplier", "epsilon", at=1.5),
            InvalidValueError,
            "at most 1, got 1.5",
        ),
        (
            lambda: plot(GaussianMechanism(1.0), "sample_rate", "epsilon", at=1e-5),
            InvalidTypeError,
            "mechanisms must have a sample_rate",
        ),
        (
            lambda: plot(LOCAL, "sample_rate", "epsilon", at=1e-5),
            InvalidValueError,
            "points must be given",
        ),
        (
            lambda: plot(LARGE, "sample_rate", "epsilon", at=1e-5, points=[0.5, 1.5]),
            InvalidValueError,
            "points must be .* at most 1",
        ),
        (
            lambda: plot(LARGE, "rounds", "epsilon", at=1e-5, points=[1, 2.5]),
            InvalidValueError,
            "points must be whole",
        ),
        (
            lambda: plot(LARGE, "rounds", "epsilon", at=1e-5, points=[0, 2]),
            InvalidValueError,
            "points must be .* of at least 1",
        ),
    ],
)
def test_bad_points_are_refused_before_anything_is_drawn(
    draw: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        draw()
    assert plt.get_fignums() == []


def test_without_matplotlib_the_message_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[plot\]'"):
        plot(LARGE)
