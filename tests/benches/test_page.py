"""The page of benchmarks is written from what was measured, and says what was met and missed."""

import csv
import importlib
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

pytest.importorskip("rich")

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture
def load(monkeypatch):
    """Import modules of benches, and forget them all afterwards."""
    monkeypatch.syspath_prepend(str(BENCHES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if path is not None and Path(path).parent == BENCHES:
            del sys.modules[name]


def timing(column, variant, rate):
    return {
        "column": column,
        "variant": variant,
        "nodes": 100,
        "problem": None,
        "best_seconds": 100 / rate,
        "nodes_per_second": rate,
        "seconds": [100 / rate],
    }


def row(job, own, verdict):
    ratio = own / 2e8
    return {
        "cells": [job, f"{own:g}", "2e8", f"{ratio:g}x", ">= 5x NumPy", verdict],
        "note": "",
        "job": job,
        "timed": False,
        "target": {"ratio_to_numpy": 5.0, "seconds": None},
        "ratios": {"NumPy": ratio},
        "timings": [
            timing("turnout", "randomize", own),
            timing("NumPy", "np.where", 1e8),
            timing("NumPy", "in place", 2e8),
        ],
    }


@pytest.fixture
def measured():
    return {
        "environment": {
            "Python": "3.11.7",
            "turnout": "0.1.0",
            "opacus": "not installed",
            "system": "Linux x86_64",
            "CPUs": "2",
        },
        "tables": [
            {
                "name": "direct",
                "title": "Direct encoding",
                "headings": ["job", "turnout", "NumPy", "ratio to NumPy", "target", "met?"],
                "rows": [
                    row("randomize, uint8", 12e8, "yes"),
                    row("randomize, int64", 8e8, "no"),
                ],
                "notes": ["a | b * c"],
            }
        ],
    }


def test_a_table_lines_up_and_holds_every_cell(load, measured):
    lines = load("page").rst_table(measured["tables"][0]).splitlines()
    assert lines[0] == lines[2] == lines[-1]
    starts = [match.start() for match in re.finditer("=+", lines[0])]
    cells = [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for line in (lines[1], *lines[3:-1])
    ]
    table = measured["tables"][0]
    assert cells == [table["headings"], *(one["cells"] for one in table["rows"])]


def test_a_dash_alone_begins_no_list(load, measured):
    measured["tables"][0]["rows"][0]["cells"][1] = "-"
    line = load("page").rst_table(measured["tables"][0]).splitlines()[3]
    assert line.split("  ")[1].strip() == "\\-"


def test_missed_targets_are_named(load, measured):
    page = load("page")
    told = page.page(measured, "{{missed}}")
    assert told == "* randomize, int64: 8e+08, 4x, target >= 5x NumPy (Direct encoding)."
    measured["tables"][0]["rows"].pop()
    assert page.page(measured, "{{missed}}") == "* None."


def test_a_target_beside_several_columns_is_met_only_beside_all(load, measured):
    target = load("jobs").Target(ratio=4, others={"NumPy, BLAS": 1.0, "jax": 1.0})
    assert str(target) == ">= 4x NumPy, 1x BLAS, 1x jax"
    ratios = {"NumPy": 4.0, "NumPy, BLAS": 1.0, "jax": 1.0, "opacus": 0.5}
    assert target.is_met(1.0, ratios)
    for column in target.others:
        assert target.is_met(1.0, {**ratios, column: 0.99}) is False
    assert target.is_met(1.0, {**ratios, "NumPy": 3.9}) is False
    assert target.is_met(1.0, {**ratios, "jax": None}) is None
    assert target.is_met(1.0, {**ratios, "NumPy": 3.9, "jax": None}) is False
    assert str(load("jobs").Target(seconds=20e-6)) == "< 20 us"
    assert load("jobs").Target(seconds=20e-6).is_met(19e-6, ratios)
    one = measured["tables"][0]["rows"][1]
    one["target"]["ratios"] = {"NumPy, BLAS": 1.0}
    one["ratios"]["NumPy, BLAS"] = 0.75
    told = load("page").page(measured, "{{missed}}")
    assert told.startswith("* randomize, int64: 8e+08, 4x, 0.75x BLAS, target")


def test_calls_again_and_again_are_timed_as_one(load):
    measurement, times = load("measurement"), []
    contender = measurement.Contender("a", "b", 1, lambda: times.append(1), lambda _: True, again=7)
    (timing,) = measurement.measure([contender], 0.0, lambda _: None)
    assert len(times) == 1 + 7 * measurement.MIN_ROUNDS
    assert timing.best < 1e-3


def test_numpy_as_one_writes_it_first_is_compared_too(load, measured):
    told = load("page").page(measured, "{{plain direct}}").replace("\n  ", " ")
    assert told == (
        "* Against NumPy written with ``where`` and ``bincount``: randomize, uint8: 12 times; "
        "randomize, int64: 8 times."
    )


def test_rows_in_which_somebody_else_is_ahead_are_named(load, measured):
    page = load("page")
    assert page.page(measured, "{{behind}}") == "* None."
    measured["tables"][0]["rows"][1] = row("randomize, int64", 5e7, "no")
    told = page.page(measured, "{{behind}}")
    assert told == "* randomize, int64: 0.25 times NumPy (Direct encoding)."


def test_the_limit_is_the_longer_of_bytes_and_words(load):
    machine = load("machine")
    found = machine.Machine(bandwidth=10e9, words=1e9, cores=2, key=1e-6)
    assert found.seconds(machine.Cost(bytes=9, words=0.5)) == 0.9e-9
    assert found.seconds(machine.Cost(bytes=2, words=0.5)) == 0.5e-9
    # One thread has half of it, and waits for its key.
    alone = machine.Cost(words=500, calls=1, alone=True)
    assert found.seconds(alone) == pytest.approx(2e-6)


def test_the_page_names_the_machine_and_what_is_missing(load, measured):
    page = load("page")
    template = "{{machine}}|{{versions}}|{{table direct}}|{{table core}}|{{notes direct}}"
    text = page.page(measured, template).split("|", 3)
    assert text[0] == "2 cores, Linux x86_64, Python 3.11.7"
    assert text[1] == "turnout 0.1.0; not installed, and so not measured: opacus."
    assert text[3] == f"{page.ABSENT}|* a \\| b \\* c"


def test_a_short_run_says_so(load, measured):
    page = load("page")
    assert page.page(measured, "{{run}}") == ""
    assert page.page({**measured, "quick": True}, "{{run}}") == page.QUICK


def test_an_unknown_mark_is_refused(load, measured):
    with pytest.raises(ValueError, match=r"unknown mark: \{\{tabel direct\}\}"):
        load("page").page(measured, "{{tabel direct}}")


def test_the_template_has_no_number_of_a_measurement(load, measured):
    page = load("page")
    text = page.TEMPLATE.read_text(encoding="utf-8")
    assert not re.findall(r"\d[\d.,]* ?(?:[kMG]/s|ms|us|s\b|x\b|times|%)", text)
    assert page.page(measured).count(page.ABSENT) == text.count("{{table ") - 1


def test_the_readme_compares_packages_as_the_page_does():
    root = BENCHES.parent
    text = (root / "docs/compare/peers.rst").read_text(encoding="utf-8")
    begin, end = text.index("What each of them does"), text.index("Reports of single people")
    table = text[begin:end].split("   :stub-columns: 1\n\n")[1].replace("\\-", "-")
    packages, *cells = csv.reader(line.strip() for line in table.splitlines() if line)
    page = {row[0]: dict(zip(packages[1:], row[1:], strict=True)) for row in cells}
    assert len(page) == 14

    lines = (root / "README.md").read_text(encoding="utf-8").replace("–", "-").splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    (chosen, *shown) = table
    assert chosen[0] == "turnout"
    assert len(shown) >= 6
    for what, *found in shown:
        assert found == [page[what][package] for package in chosen], what


def test_no_number_of_a_measurement_stands_in_the_readme():
    readme = (BENCHES.parent / "README.md").read_text(encoding="utf-8")
    assert not re.findall(r"\d[\d.,]* ?(?:[kMG]/s|ms|us|times)\b", readme)


@pytest.mark.parametrize(
    ("epsilon", "verdict"),
    [
        (0.5, "too small by 50 %"),
        (1.05, "as tight"),
        (1.21, "10.0 % larger"),
        (4.4, "4 times as large"),
    ],
)
def test_an_epsilon_below_the_lower_value_is_too_small(load, epsilon, verdict):
    assert load("epsilon_jobs").verdict_of(epsilon, 1.0, 1.1) == verdict


def test_errors_and_their_standard_errors(load):
    jobs, peers = load("accuracy_jobs"), load("accuracy_peers")
    estimator = peers.Estimator("x", lambda *_: None)
    errors = list(np.random.default_rng(1).normal(0.1, 2.0, (400, 50)))
    record = jobs.Record("a", "b", estimator, errors)
    root, error = record.rmse
    # E(x^2) = 4.01, Var(x^2) = 2 * 16 + 4 * 4 * 0.01; delta method for the root; alpha = 1e-6.
    expected, spread = math.sqrt(4.01), math.sqrt(32.16 / 20_000) / (2 * math.sqrt(4.01))
    assert abs(root - expected) < 4.9 * spread
    assert error == pytest.approx(spread, rel=0.25)
    bias, bias_error = record.bias
    assert abs(bias - 0.1) < 4.9 * 2.0 / 20
    assert bias_error == pytest.approx(0.1, rel=0.25)


def test_an_audit_accuses_only_what_the_counts_prove(load):
    checks = load("peer_checks")
    often, seldom, draws = 700, 200, 1000
    least = checks.least_epsilon(often, seldom, draws)
    # The limits by bisection of exact binomial tails.
    low = brentq(lambda p: binom.sf(often - 1, draws, p) - checks.ALPHA / 2, 1e-9, often / draws)
    high = brentq(lambda p: binom.cdf(seldom, draws, p) - checks.ALPHA / 2, seldom / draws, 1.0)
    assert least == pytest.approx(math.log(low / high), rel=1e-9)
    assert least < math.log(often / seldom)
    assert checks.least_epsilon(seldom, often, draws) == 0.0
    assert checks.least_epsilon(0, 0, draws) == 0.0
    assert checks.least_epsilon(draws, draws, draws) == 0.0


def test_the_population_has_all_its_nodes(load):
    counts = np.bincount(load("accuracy_jobs").zipf(50_000, 100))
    assert counts.sum() == 50_000
    assert counts[0] / counts[9] == pytest.approx(10.0, rel=0.02)


def test_a_program_that_fails_is_named_below_its_table(load, monkeypatch):
    jobs, peers = load("accuracy_jobs"), load("accuracy_peers")

    def broken(codes, participation):
        raise ArithmeticError("no more")

    collector = peers.Collector("peer", "oracle", broken, [])
    monkeypatch.setattr(peers, "load", lambda *_: ([collector], {}))
    monkeypatch.setattr(jobs, "small_group", lambda *_: None)
    for figures in list(jobs.measure(None, 0.0, lambda _: None))[:3]:
        assert figures.notes[-1] == "peer, oracle failed: ArithmeticError: no more"


def test_the_best_of_the_peers_stands_beside_shrinking(load):
    populations, jobs, peers = (
        load("population_jobs"),
        load("accuracy_jobs"),
        load("accuracy_peers"),
    )
    codes = populations.populations()
    assert len(codes) == 10
    assert np.bincount(codes["native country in Adult"]).size == 42
    assert all(49_000 < one.size <= 50_000 for one in codes.values())
    generator = np.random.default_rng(1)

    def record(program, name, size):
        estimator = peers.Estimator(name, lambda *_: None, distribution=True)
        return jobs.Record(program, "oracle", estimator, list(generator.normal(0, size, (20, 100))))

    own = [record("turnout", "hajek, shrunk", 0.01), record("turnout", "onto the simplex", 0.02)]
    row = populations._row("bell", [*own, record("a", "x", 0.015), record("b", "y", 0.005)])
    assert row.cells[3] == "b, oracle, y"
    assert row.raw["verdict"].endswith("x, smaller")
    assert populations._row("bell", own).cells[3:] == ("-", "-", "-", "-")
    collector = peers.Collector("p", "o", None, [peers.Estimator("x", None), own[0].estimator])
    assert peers.distributions(collector).estimators == [own[0].estimator]
