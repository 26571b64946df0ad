"""The device of ``examples/device`` on questions of every kind: numbers, tables, trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.devices import Device, gathered, resealed

import turnout as tn
from turnout.errors import CorruptDataError, TurnoutError
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.choice import registered

NODES = 300
LABELS = ["never", "once", "\U0001f600 é", "", "a,b", "5"]
COLUMNS: dict[str, Any] = {"sex": ["f", "m"], "a ge": 7, "vote é": ["no", None, 1, "1", 0.5]}


def numbers(low: float, high: float) -> list[float]:
    """Some numbers within bounds, both among them."""
    drawn = np.random.default_rng(1).uniform(low, high, NODES - 2)
    return [low, high, *drawn.tolist()]


def lists(low: float, high: float, dimensions: int) -> list[list[float]]:
    return np.random.default_rng(2).uniform(low, high, (NODES, dimensions)).tolist()


def people(columns: dict[str, Any] = COLUMNS) -> list[dict[str, Any]]:
    generator = np.random.default_rng(3)
    labels = {
        name: list(range(answers)) if isinstance(answers, int) else answers
        for name, answers in columns.items()
    }
    return [
        {name: answers[generator.integers(len(answers))] for name, answers in labels.items()}
        for _ in range(NODES)
    ]


PEOPLE = people()
MANY = {f"a{place}": 2 for place in range(257)}
EACH = {
    "sex": tn.DirectEncoding,
    "a ge": tn.SummationHistogramEncoding,
    "vote é": tn.OptimizedLocalHashing,
}
CODES = np.random.default_rng(4).integers(0, 100, NODES).tolist()
ANSWERS = np.random.default_rng(5).choice(LABELS, NODES).tolist()

PADDED = PaddedOracle(2.0, LABELS, oracle=tn.SubsetSelection(2.0, LABELS), own_probability=0.3)

#: For each case the question and its answers, as Python takes them.
QUESTIONS: dict[str, tuple[Any, list[Any]]] = {
    "Duchi": (tn.mean.Duchi(1.0, (0, 10)), numbers(0, 10)),
    "Duchi in four dimensions": (tn.mean.Duchi(2.0, (-1, 1), 4), lists(-1, 1, 4)),
    "piecewise": (tn.mean.Piecewise(2.0, (-5.5, 1e3)), numbers(-5.5, 1e3)),
    "piecewise of large epsilon": (tn.mean.Piecewise(20.0), numbers(-1, 1)),
    "piecewise in five dimensions": (tn.mean.Piecewise(6.0, (0, 10), 5), lists(0, 10, 5)),
    "hybrid": (tn.mean.Hybrid(1.5, (1e-9, 1e-8)), numbers(1e-9, 1e-8)),
    "hybrid of small epsilon": (tn.mean.Hybrid(0.3), numbers(-1, 1)),
    "hybrid in 300 dimensions": (tn.mean.Hybrid(10.0, (0, 1), 300), lists(0, 1, 300)),
    # Its places need wider integers than its cells, of which there are two.
    "hybrid of small epsilon in 300 dimensions": (
        tn.mean.Hybrid(0.3, (0, 1), 300),
        lists(0, 1, 300),
    ),
    "square wave": (tn.SquareWave(1.0, (0, 24), bins=24), numbers(0, 24)),
    "square wave of many bins": (tn.SquareWave(3.0, (-1e9, 2e9), bins=1024), numbers(-1e9, 2e9)),
    "joint table": (tn.JointTable(2.0, COLUMNS), PEOPLE),
    "joint table by hashing": (
        tn.JointTable(1.0, COLUMNS, oracle=tn.BinaryLocalHashing),
        PEOPLE,
    ),
    "tree": (tn.HierarchicalCollection(1.0, 100, fanout=3), CODES),
    "tree of labels": (tn.HierarchicalCollection(2.0, LABELS, fanout=2), ANSWERS),
    "tree of rows": (
        tn.HierarchicalCollection(1.0, 100, fanout=10, oracle=tn.OptimizedUnaryEncoding),
        CODES,
    ),
    "tree of one level": (tn.HierarchicalCollection(1.0, 100, fanout=2**40), CODES),
    "pairs": (tn.PairTables(3.0, COLUMNS), PEOPLE),
    "sampled": (tn.SampledAttribute(1.0, COLUMNS), PEOPLE),
    "sampled by weight": (
        tn.SampledAttribute(
            2.0, COLUMNS, oracle=EACH, weights={"sex": 0.1, "a ge": 5, "vote é": 1}
        ),
        PEOPLE,
    ),
    "sampled of many": (tn.SampledAttribute(1.0, MANY, oracle=tn.DirectEncoding), people(MANY)),
    "sampled with padding": (
        tn.SampledAttribute(
            2.0, COLUMNS, oracle=EACH, weights={"sex": 1, "a ge": 5, "vote é": 2}, padding="fake"
        ),
        PEOPLE,
    ),
    "padded": (PADDED, ANSWERS),
    "split": (tn.SplitBudget(3.0, COLUMNS), PEOPLE),
    "split by weight": (
        tn.SplitBudget(1.0, COLUMNS, oracle=EACH, weights={"sex": 1, "a ge": 3, "vote é": 0.3}),
        PEOPLE,
    ),
}

#: Every oracle that can be a part, of few answers and of many: their integers differ in width.
QUESTIONS |= {
    f"split by {name} of {size}": (
        tn.SplitBudget(2.0, {"a": size, "b": size}, oracle=oracle),
        [{"a": place * 7 % size, "b": place * 11 % size} for place in range(NODES)],
    )
    for size in (3, 300)
    for name, oracle in registered().items()
}


def lines_of(answers: Any) -> str:
    """Answers as the device takes them."""
    given = answers.tolist() if isinstance(answers, np.ndarray) else answers
    texts = [
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given
    ]
    return "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_messages_are_those_of_python_bit_for_bit(name: str, device: Device) -> None:
    oracle, answers = QUESTIONS[name]
    # What is named is named or stands in the order of the plan.
    lists = isinstance(answers[0], dict) and name.startswith("split")
    lines = lines_of([[*row.values()] for row in answers] if lists else answers)
    for who in (tn.Everyone(), tn.Bernoulli(0.3)):
        plan = tn.Plan(oracle, who)
        done = device(plan, "--seed", 77, lines=lines)
        expected = oracle.randomize(
            np.array(answers) if isinstance(answers[0], (float, list)) else answers,
            participation=who,
            seed=77,
        )
        assert gathered(plan, done, len(answers)) == expected


def test_every_kind_is_answered_or_refused_with_a_reason(
    kinds: Any, device: Device, tmp_path: Path
) -> None:
    found = {}
    for name, oracle in kinds.KINDS.items():
        plan = tn.Plan(oracle, tn.Bernoulli(0.5))
        answers = kinds.answers_of(oracle)
        if not oracle.fresh:
            plan = tn.Plan(oracle, tn.Everyone())
            done = device(plan, "--state", tmp_path / name, lines=lines_of(answers[:1]))
            assert len(gathered(plan, done, 1)) == 1
            found[name, "message in Rust"] = "works"
            continue
        done = device(plan, "--seed", 4, lines=lines_of(answers))
        if done.returncode:
            found[name, "message in Rust"] = done.stderr.removeprefix(
                f"error: {device.path}: "
            ).strip()
            continue
        expected = oracle.randomize(answers, participation=plan.participation, seed=4)
        assert gathered(plan, done, len(answers)) == expected, name
        found[name, "message in Rust"] = "works"
    kinds.compare(found)


def test_fresh_messages_estimate_the_truth(device: Device) -> None:
    hybrid = tn.mean.Hybrid(3.0, (0, 10))
    plan = tn.Plan(hybrid, tn.Bernoulli(0.5))
    done = device(plan, lines="2\n" * 3000 + "7\n" * 1000)
    mean = hybrid.tally(gathered(plan, done, 4000)).estimate().interval(1 - 1e-6)
    assert mean.low < 3.25 < mean.high < 4.5
    pairs = tn.PairTables(4.0, COLUMNS)
    plan = tn.Plan(pairs, tn.Everyone())
    done = device(plan, lines='["f",1,null]\n' * 3000 + '["m",1,"1"]\n' * 1000)
    table = pairs.tally(gathered(plan, done, 4000)).estimate()["sex", "vote é"]
    found = table.interval(1 - 1e-6)
    truth = np.zeros((2, 5))
    truth[0, 1], truth[1, 3] = 0.75, 0.25
    assert found.contains(truth.ravel()).all()
    assert not found.contains(truth[::-1].ravel()).all()


def test_codes_of_several_questions_are_a_line_of_json(device: Device) -> None:
    codes = [[COLUMNS["sex"].index(row["sex"]), row["a ge"], 3] for row in PEOPLE]
    people = [{**row, "vote é": "1"} for row in PEOPLE]
    for name in ("joint table", "pairs", "split"):
        plan = tn.Plan(QUESTIONS[name][0], tn.Everyone())
        done = device(plan, "--codes", "--seed", 5, lines=lines_of(codes))
        assert gathered(plan, done, NODES) == plan.oracle.randomize(people, seed=5)


ROWS = "is no line of JSON with an answer to each of: sex, a ge, vote é"
WRONG: list[tuple[str, list[str], str]] = [
    ("Duchi", ["10.5", "-1", "nan", "inf", "", "x", "1,5", " 1"], "is no number from 0 to 10"),
    (
        "piecewise in five dimensions",
        ["1", "[1,2,3,4]", "[1,2,3,4,5,6]", "[1,2,3,4,11]", '[1,2,3,4,"5"]', "1,2,3,4,5"],
        "is no list of 5 numbers from 0 to 10",
    ),
    ("square wave", ["24.5", "-0.001"], "is no number from 0 to 24"),
    ("joint table", ['{"sex":"f","a ge":3}', '["f",3]', "f", '["f",3,"no",1]'], ROWS),
    ("pairs", ['["f",7,"no"]', '["f","3","no"]', '["f",-1,"no"]'], "to a ge is not one of the 7"),
    ("split", ['{"vote é":"0.5","a ge":3,"sex":"f"}'], "to vote é is not one of the 5"),
    ("sampled", ['["x",1,1]', "[0,1,1]", "[null,1,1]"], "to sex is not one of the 2"),
    ("tree", ["100", "-1", "1.5"], "is not one of the 100"),
    ("tree of labels", ["Once"], "is not one of the 6"),
]


@pytest.mark.parametrize(("name", "wrong", "words"), WRONG, ids=[each[0] for each in WRONG])
def test_answers_that_are_none_stop_all_and_are_not_shown(
    name: str, wrong: list[str], words: str, device: Device
) -> None:
    oracle, answers = QUESTIONS[name]
    plan = tn.Plan(oracle, tn.Everyone())
    for text in wrong:
        done = device(plan, lines=f"{lines_of(answers[:1])}{text}\n")
        assert (done.returncode, done.stdout) == (1, ""), text
        assert done.stderr == f"error: answer 2 {words}\n"


def test_an_integer_that_would_be_rounded_is_refused_as_in_python(device: Device) -> None:
    plan = tn.Plan(tn.mean.Duchi(1.0, (0, 1e20)), tn.Everyone())
    for number in (2**53, 10**19, 2**53 + 1, 10**19 + 1):
        done = device(plan, number)
        if number == int(float(number)):
            plan.report(number)
            assert len(gathered(plan, done, 1)) == 1
        else:
            with pytest.raises(TurnoutError):
                plan.report(number)
            assert (done.returncode, done.stdout) == (1, "")


def test_numbers_have_no_codes(device: Device) -> None:
    done = device(tn.Plan(tn.mean.Duchi(1.0), tn.Everyone()), "1", "--codes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "numbers have no codes" in done.stderr


ALTERED = [
    ("Duchi", '"bounds":[0.0,10.0]', '"bounds":[10.0,0.0]'),
    ("Duchi", '"bounds":[0.0,10.0]', '"bounds":[0.0]'),
    ("Duchi", '"dimensions":1', '"dimensions":0'),
    ("Duchi", '"dimensions":1', '"dimensions":65537'),
    ("Duchi", '"dimensions":1', '"bins":10'),
    ("Duchi", '"dimensions":1', '"bins":10,"dimensions":1'),
    ("Duchi", '"name":', '"more":1,"name":'),
    ("Duchi", '"epsilon":1.0', '"epsilon":43.0'),
    ("square wave", '"bins":24', '"bins":1'),
    ("square wave", '"bins":24', '"bins":1025'),
    ("square wave", '"bins":24', '"bins":24.0'),
    ("square wave", '"name":', '"more":1,"name":'),
    ("joint table", '"integers":70', '"integers":71'),
    ("joint table", '"integers":7}', '"integers":8}'),
    ("joint table", '"name":"sex"', '"name":"a ge"'),
    ("joint table", '["f","m"]', '["f"]'),
    ("joint table", '["f","m"]', '["f","f"]'),
    ("joint table", ']},"epsilon":2.0', ']},"epsilon":1.5'),
    ("joint table", '"integers":7}', '"integers":7000000}'),
    ("joint table", '"name":"joint', '"more":1,"name":"joint'),
    ("tree", '"fanout":3', '"fanout":4'),
    ("tree", '"fanout":3', '"fanout":1'),
    ("tree", '"fanout":3', '"fanout":3.0'),
    (
        "tree",
        '"domain":{"integers":100},"epsilon":1.0,"fanout"',
        '"domain":{"integers":100},"epsilon":0.5,"fanout"',
    ),
    ("tree", '"integers":34', '"integers":35'),
    ("pairs", '"integers":14', '"integers":15'),
    ("pairs", ']},"epsilon":3.0', ']},"epsilon":2.5'),
    ("pairs", '"integers":7}', '"integers":200000}'),
    ("pairs", '"name":"pair_tables"', '"name":"split_budget"'),
    ("sampled", '"padding":null', '"padding":"true"'),
    ("sampled", '"padding":null', '"padding":null,"more":1'),
    ("sampled", '"padding":null,', ""),
    ("sampled", '"weights":[1,1,1]', '"weights":[1,1]'),
    ("sampled", '"weights":[1,1,1]', '"weights":[1,1,0]'),
    ("sampled", '"weights":[1,1,1]', '"weights":[1,1,4611686018427387905]'),
    ("sampled", ']},"epsilon":1.0', ']},"epsilon":0.9'),
    ("padded", '"own_probability":0.3', '"own_probability":0.0'),
    ("padded", '"own_probability":0.3', '"own_probability":1.5'),
    ("padded", '"own_probability":0.3', '"own_probability":0.3,"more":1'),
    ("padded", '"epsilon":2.0,"name":"padded"', '"epsilon":2.5,"name":"padded"'),
    ("padded", '"epsilon":2.0,"name":"subset', '"epsilon":1.5,"name":"subset'),
    (
        "padded",
        '"padded","oracle":{"domain":{"labels":["n',
        '"padded","oracle":{"domain":{"labels":["',
    ),
    ("split", ']},"epsilon":3.0', ']},"epsilon":2.9999999999999996'),
    ("split", ']},"epsilon":3.0', ']},"epsilon":-3.0'),
    ("split", '"integers":7},"name"', '"integers":8},"name"'),
    ("split", '"weights":[1,1,1]', '"weights":[1,1,1.0]'),
    ("split", '"weights":', '"padding":null,"weights":'),
]


@pytest.mark.parametrize(("name", "old", "new"), ALTERED)
def test_plans_with_other_values_are_refused_alike(
    name: str, old: str, new: str, device: Device, tmp_path: Path
) -> None:
    oracle, answers = QUESTIONS[name]
    path = resealed(tmp_path / "plan.json", old, new, tn.Plan(oracle, tn.Everyone()))
    with pytest.raises(CorruptDataError) as caught:
        tn.Plan.read(path)
    assert "altered or reformatted" not in str(caught.value)
    done = device(path, lines=lines_of(answers[:1]))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {path}: ")
