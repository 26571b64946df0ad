"""When two rounds beat one."""

from __future__ import annotations

import pytest

from turnout.errors import InvalidTypeError
from turnout_reproduce.studies import compare_two_rounds


def test_it_helps_rare_answers_at_a_large_epsilon_and_none_at_a_small_one() -> None:
    counts = [300_000, 30_000, 3_000, 300]
    large = compare_two_rounds(counts, epsilon=8.0, rate=0.05, low=0.025, high=0.6, repeats=300)
    said = large.settings
    assert said["two_round_reports"] == pytest.approx(said["one_round_reports"], rel=0.02)
    assert said["spent"] <= 8.0
    frequent, *_, rare = large.records
    assert rare.ratio < 0.6
    assert frequent.ratio > 1.1
    small = compare_two_rounds(counts, epsilon=1.0, rate=0.05, low=0.025, high=0.06, repeats=300)
    assert all(row.ratio > 1.2 for row in small.records)
    assert "two rounds" in large.table()


def test_the_picture() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    study = compare_two_rounds([900, 90, 10], epsilon=6.0, rate=0.3, low=0.2, high=0.6, repeats=20)
    (axes,) = study.plot()
    assert "rounds" in axes.get_ylabel()
    with pytest.raises(InvalidTypeError):
        study.plot(ax=3)
    plt.close("all")
