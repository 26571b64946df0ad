"""The everyday check keeps one case of every law, however many of its tests are slow."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.accounting.mechanism import Mechanism
from turnout.frequency.choice import oracle_classes

ROOT = Path(__file__).parents[1]

#: The second computation of every mechanism of the accounting.
SECOND = {
    "RandomParticipation": "test_extremes.py::test_delta_is_right_to_1e_11",
    "WeakClientSampling": "test_limits.py::test_weak_client_sampling_is_the_rate_times_local",
    "CentralShuffling": "test_extremes.py::test_delta_is_right_to_1e_11",
    "LocalSampling": "test_against_dp_accounting.py::test_local_sampling_composes_as",
    "GaussianMechanism": "test_against_dp_accounting.py::test_gaussians_compose_to_a_gaussian",
    "CountSampling": "test_counts.py::test_delta_is_the_exact_sum",
    "DiscreteLaplaceNoise": "test_integer_noise.py::test_delta_is_the_sum_over_all_outcomes",
    "DiscreteGaussianNoise": "test_integer_noise.py::test_delta_is_the_sum_over_all_outcomes",
    "NoisySums": "test_noisy_sums.py::test_delta_is_the_sum_over_all_outcomes",
    "SkellamNoise": "test_integer_noise.py::test_delta_is_the_sum_over_all_outcomes",
    "SummedDiscreteGaussianNoise": "test_summed_noise.py::test_delta_is_the_sum_over_all_outcomes",
    "TwoStageCountSampling": "test_two_stage.py::test_with_dummies_delta_is_that_of_a_lonely",
    "FixedSizeBatches": "test_batches.py::test_no_data_lose_more_by_batches_of_a_fixed_size",
    "ShuffledBatches": "test_batches.py::test_no_data_lose_more_in_a_shuffled_pass",
    "RandomCheckIns": "test_batches.py::test_two_slots_lose_what_integration_says",
    "SampleAndThreshold": "test_thresholded.py::test_delta_is_the_largest_over_all_counts",
    "Shuffled": "test_shuffled.py::test_delta_is_above_that_of_all_data",
}

#: What else is never left out.
LAWS = [
    "tests/accounting/test_soundness.py::test_no_real_configuration_in_two_and_three_dimensions",
    "tests/accounting/test_soundness.py::test_a_hundred_rounds_of_a_real_client",
    "tests/distributed/test_laws.py::test_estimates_have_no_bias_their_variance_and_intervals",
    "tests/ray/test_same_reports.py::test_files_are_those_of_the_plain_path",
    "tests/federated/flower/test_strategy.py::",
    "tests/pipeline/test_jobs.py::test_sigkill_leaves_whole_files",
    "tests/reproduce/test_sampling.py::test_distances_are_those_of_normal_errors",
    "tests/reproduce/test_fair.py::test_claims_of_figure_1",
    "tests/reproduce/test_participation.py::test_the_theorem_is_found_wrong",
    "tests/reproduce/test_private_sampling.py::test_the_verdicts_on_the_theorems",
    "README.md::README.md",
    "docs/start.rst::start.rst",
]


@pytest.fixture(scope="module")
def everyday() -> Any:
    """What `make test` runs of the files that are named here."""
    files = {"tests/frequency/oracles/test_audit.py"}
    files |= {f"tests/accounting/{test.split('::')[0]}" for test in SECOND.values()}
    files |= {law.split("::")[0] for law in LAWS}
    options = ["--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-m", "everyday or not slow", *sorted(files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tests = collected.stdout.splitlines()

    def cases(start: str) -> list[str]:
        return [test for test in tests if test.startswith(start)]

    return cases


@pytest.mark.everyday
def test_every_oracle_is_audited(everyday: Callable[[str], list[str]]) -> None:
    cases = everyday("tests/frequency/oracles/test_audit.py::test_no_oracle_loses_more_than_its")
    audited = {re.sub(r".*\[.*-([a-z_]+)\]$", r"\1", case) for case in cases}
    modules = "turnout.frequency.oracles"
    oracles = {
        name for name, oracle in oracle_classes().items() if oracle.__module__.startswith(modules)
    }
    assert len(oracles) > 10
    assert audited >= oracles, f"every case of {sorted(oracles - audited)} is slow"


@pytest.mark.everyday
def test_every_mechanism_is_compared_with_its_second_computation(
    everyday: Callable[[str], list[str]],
) -> None:
    public = {
        name
        for name in tn.accounting.__all__
        if isinstance(value := getattr(tn.accounting, name), type) and issubclass(value, Mechanism)
    }
    assert public - {"Mechanism"} == set(SECOND)
    for mechanism, test in SECOND.items():
        assert everyday(f"tests/accounting/{test}"), f"all cases for {mechanism} are slow: {test}"


@pytest.mark.everyday
@pytest.mark.parametrize("law", LAWS)
def test_no_law_is_left_out(everyday: Callable[[str], list[str]], law: str) -> None:
    assert everyday(law), f"all cases of {law} are slow"


def test_the_list_of_slow_tests_names_tests_that_are_there() -> None:
    lines = (ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert lines, "the list is empty"
    for line in lines:
        file, _, test = line.split(" ", 1)[1].partition("::")
        name = re.sub(r"\[.*", "", test).rsplit("::", 1)[-1]
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not file.endswith(".py") or f"def {name}(" in text, f"{line} is no test any more"
