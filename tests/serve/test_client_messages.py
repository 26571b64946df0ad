"""The client of browsers makes the core's messages bit for bit, for questions of every kind."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.serve.clients import KEY, needs_node, plain, report_of, run, text_of
from tests.test_device import LABELS, ROUNDS, oracles
from tests.test_device_permanent import STAGES, memoized
from tests.test_device_questions import QUESTIONS

import turnout as tn
from turnout.frequency.choice import registered

pytestmark = needs_node

#: More seeds than gaps of rare people are long.
SEEDS = 12


def cases() -> dict[str, tuple[Any, list[Any]]]:
    """Randomizers and answers to them."""
    domain = tn.Domain(LABELS)
    return {
        **{name: (oracle, LABELS) for name, oracle in oracles(domain).items()},
        **{f"round: {name}": (oracle, answers) for name, (oracle, answers) in ROUNDS.items()},
        **{name: (oracle, answers) for name, (oracle, answers) in QUESTIONS.items()},
        **{
            f"{name} of epsilon {epsilon}": (kind(epsilon, domain), LABELS)
            for name, kind in registered().items()
            for epsilon in (0.1, 2 / 3, 7.0, 20.0)
        },
        **{
            f"{name} of {size}": (registered()[name](1.0, size), [0, 1, size // 2, size - 1])
            for name in ("direct_encoding", "hadamard_response", "projective_geometry_response")
            for size in (2, 255, 256, 257, 65_537)
        },
        **{
            f"{kind.__name__} of epsilon {epsilon}": (kind(epsilon, (0, 10)), [0.0, 0.1, 5.0, 10.0])
            for kind in (tn.mean.Duchi, tn.mean.Piecewise, tn.mean.Hybrid, tn.SquareWave)
            for epsilon in (0.01, 0.5, 0.7, 3.3, 12.0)
        },
        **{
            f"{name} of rows": (registered()[name](1.0, 3000), [0, 63, 64, 2047, 2048, 2999])
            for name in ("optimized_unary_encoding", "subset_selection", "count_mean_sketch")
        },
    }


CASES = cases()


def test_messages_are_those_of_the_core_bit_for_bit(tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    expected = []
    for (name, (oracle, some)), rate in product(CASES.items(), (1.0, 0.3, 0.012)):
        answers = (some * SEEDS)[:SEEDS]
        plan = tn.Plan(oracle, tn.Bernoulli(rate) if rate < 1 else tn.Everyone())
        seeds = [str(2**61 + seed) for seed in range(SEEDS)]
        job = {"plan": text_of(plan, tmp_path), "key": KEY.public_key, "seeds": seeds}
        jobs.append({**job, "answers": [plain(answer) for answer in answers]})
        made = [
            plan.report(answer, seed=int(seed)) for answer, seed in zip(answers, seeds, strict=True)
        ]
        expected.append((f"{name}, {rate}", [report_of(message) for message in made]))
    for result, (name, reports) in zip(run(jobs), expected, strict=True):
        assert "error" not in result, (name, result)
        assert [report_of(message) for message in result["messages"]] == reports, name
    silent = [report is None for _, reports in expected for report in reports]
    assert 0.5 < sum(silent) / len(silent) < 0.7


def test_every_kind_is_answered_or_refused_with_a_reason(kinds: Any, tmp_path: Path) -> None:
    jobs, made = [], []
    for oracle in kinds.KINDS.values():
        answers = list(kinds.answers_of(oracle))[:20]
        seeds = [str(seed) for seed in range(len(answers))]
        plan = tn.Plan(oracle, tn.Bernoulli(0.5))
        if oracle.fresh:
            report = plan.report
        else:
            client = oracle.client(secret=bytes(range(32)), max_values=5)
            report = partial(client.message, plan)
        reports = [
            report(answer, seed=int(seed)) for answer, seed in zip(answers, seeds, strict=True)
        ]
        job = {"plan": text_of(plan, tmp_path), "seeds": seeds, "most": 5}
        jobs.append({**job, "answers": [plain(answer) for answer in answers]})
        made.append([report_of(message) for message in reports])
    found = {}
    for name, result, reports in zip(kinds.KINDS, run(jobs), made, strict=True):
        if "error" in result:
            found[name, "message in a browser"] = result["error"]["message"]
            continue
        assert [report_of(message) for message in result["messages"]] == reports, name
        assert "undefined" not in " ".join(result["plan"]["words"])
        found[name, "message in a browser"] = "works"
    kinds.compare(found)


def test_permanent_answers_and_their_states_are_those_of_the_core(tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    expected = []
    for stages, size, per, rate in product(STAGES, (3, 70), ("answer", "phase"), (1.0, 0.5)):
        plan = tn.Plan(memoized(stages, per, size), tn.Bernoulli(rate))
        client = plan.oracle.client(secret=bytes(range(32)), max_values=3)
        labels = plan.oracle.domain.labels
        answers = [
            labels[code] for code in ([2, 2, 0, 2, 0, 1] if per == "answer" else [2, 0, 0, 2, 2])
        ]
        seeds = [str(seed) for seed in range(len(answers))]
        jobs.append(
            {"plan": text_of(plan, tmp_path), "answers": answers, "seeds": seeds, "most": 3}
        )
        reports, states = [], []
        for answer, seed in zip(answers, seeds, strict=True):
            reports.append(report_of(client.message(plan, answer, seed=int(seed))))
            states.append(client.to_bytes().decode())
        expected.append((reports, states))
    for result, (reports, states) in zip(run(jobs), expected, strict=True):
        assert [report_of(message) for message in result["messages"]] == reports
        assert result["states"] == states


def test_messages_carry_the_group_and_are_gathered(tmp_path: Path) -> None:
    groups = {"region": ["north", "süd", None], "year": [2025, 2026], "share": [0.5, 1.0]}
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), groups=groups)
    given = [
        {"year": 2026, "region": "süd", "share": 1},
        ["north", 2025, 0.5],
        {"region": None, "year": 2025, "share": 0.5, "more": 1},
    ]
    text = text_of(plan, tmp_path)
    results = run({"plan": text, "answers": ["yes"] * 50, "group": group} for group in given)
    messages = [message for result in results for message in result["messages"]]
    collector = tn.Collector(plan)
    assert collector.accept_many(messages).accepted == 150
    found = collector.tally()
    assert {key: tally.nodes for key, tally in found.items()} == {
        ("süd", 2026, 1.0): 50,
        ("north", 2025, 0.5): 50,
        (None, 2025, 0.5): 50,
    }
    for wrong in [{"region": "west", "year": 2025, "share": 1}, ["north", 2025], "north", None]:
        [result] = run([{"plan": text, "answers": ["yes"], "group": wrong}])
        assert result["error"]["code"] == "group"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("direct_encoding", ["Never", 5, None, ["never"], {"never": 1}, True]),
        ("Duchi", [10.5, -1, "5", None, [1, 2], True]),
        ("piecewise in five dimensions", [1, [1, 2, 3, 4], [1, 2, 3, 4, 11], [1, 2, 3, 4, "5"]]),
        ("square wave", [24.5, -0.001, "x"]),
        (
            "joint table",
            [{"sex": "f", "a ge": 3}, ["f", 3], "f", ["f", 3, "no", 1], ["f", 7, "no"]],
        ),
        ("pairs", [["f", "3", "no"], ["f", -1, "no"]]),
        ("tree", [100, -1, 1.5, "3"]),
        ("round: numbers", [4096, -1, "007", "+7", 1.5, None]),
        ("round: an alphabet", ["abcd", "A", 1]),
        ("round: UTF-8", ["€€", "a\0", "\ud800"]),
    ],
)
def test_answers_that_are_none_are_refused_and_not_shown(
    name: str, wrong: list[Any], tmp_path: Path
) -> None:
    plan = tn.Plan(CASES[name][0], tn.Everyone())
    text = text_of(plan, tmp_path)
    results = run({"plan": text, "answers": [each]} for each in wrong)
    for answer, result in zip(wrong, results, strict=True):
        assert result["error"]["code"] == "answer", answer
        # Some are shorter than what is said of all of them.
        assert len(str(answer)) < 4 or str(answer) not in result["error"]["message"]


def test_a_person_is_told_what_is_asked(tmp_path: Path) -> None:
    plan = tn.Plan(tn.JointTable(2.0, {"sex": ["f", "m"], "age": 5}), tn.Bernoulli(0.25), serial=3)
    [result] = run([{"plan": text_of(plan, tmp_path)}])
    found = result["plan"]
    assert found["questions"] == [
        {"name": "sex", "kind": "choice", "size": 2, "labels": ["f", "m"]},
        {"name": "age", "kind": "choice", "size": 5, "labels": None},
    ]
    assert (found["fingerprint"], found["signer"]) == (plan.fingerprint, KEY.public_key)
    words = " ".join(found["words"])
    assert "at most 7.4 to 1" in words
    assert "25 of 100 people" in words
