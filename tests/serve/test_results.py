"""What results say: nothing of what is hidden, and what a person spends who reports every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import Running
from tests.serve.test_taking import Open, message_of, opened, take
from tests.serve.waiting import until

import turnout as tn
from turnout.serve.results import Results

__all__ = ["opened"]

QUESTION = tn.DirectEncoding(3.0, ["no", "yes"])


def serials(number: int, oracle: Any = QUESTION) -> list[tn.Plan]:
    return [tn.Plan(oracle, tn.Everyone(), serial=each) for each in range(number)]


def test_groups_that_are_hidden_are_in_no_number(opened: Open) -> None:
    groups = {"region": ["north", "south"]}
    plan = tn.Plan(QUESTION, tn.Everyone(), groups=groups)
    collection, store = opened(plan)
    (family,) = collection.families
    take(collection, store, [message_of(plan, "yes", "north") for _ in range(30)])
    take(collection, store, [message_of(plan, "yes", "south") for _ in range(13)], [b"hello"])
    (number,) = family.numbers
    store.ask(number, '["north"]', 37)
    # More reported than were asked: what is wrong with a hidden group is not said either.
    store.ask(number, '["south"]', 11)
    results = Results.of(store, family, least=20)
    found = results.described()
    assert (found["hidden"], found["received"], found["nodes"], found["asked"]) == (1, 30, 30, 37)
    assert found["left_out"] | {"refused": 0} == {
        **found["left_out"],
        "unanswered": 7,
        "refused": 0,
    }
    assert [each["group"] for each in found["estimates"]] == [{"region": "north"}] * 2
    page = results.page("Title")
    assert page is not None
    assert "1 group has fewer than 20 reports" in page
    assert "43" not in {word.strip(",.") for word in page.replace("<", " ").split()}
    nothing = Results.of(store, family, least=31)
    hidden = nothing.described()
    assert hidden["hidden"] == 2
    assert [hidden[name] for name in ("received", "nodes", "asked")] == [None, None, None]
    assert (hidden["left_out"]["refused"], hidden["left_out"]["unanswered"]) == (1, 0)
    assert "Nothing can be shown yet: " in nothing.page("Title")


def test_what_all_plans_and_one_of_them_differ_by_is_large_enough(opened: Open) -> None:
    collection, store = opened(*serials(4))
    (family,) = collection.families
    plans = family.plans

    def received(only: tn.Plan | None = None) -> Any:
        return Results.of(store, family, only, least=20).described()["received"]

    def send(plan: tn.Plan, number: int) -> None:
        take(collection, store, [message_of(plan, "yes") for _ in range(number)])

    send(plans[0], 60)
    send(plans[1], 10)
    # 70 in all would tell that 10 people answered under the other plan, and what they said.
    assert (received(), received(plans[0]), received(plans[1])) == (60, 60, None)
    send(plans[2], 9)
    assert received() == 60
    send(plans[3], 1)
    assert (received(), received(plans[2])) == (80, None)
    send(plans[1], 10)
    assert (received(), received(plans[1])) == (80, 20)


def test_many_small_rounds_count_together(opened: Open) -> None:
    plans = serials(5)
    collection, store = opened(*plans)
    for plan in plans:
        take(collection, store, [message_of(plan, "yes") for _ in range(5)])
    found = Results.of(store, collection.families[0], least=20).described()
    assert (found["received"], found["hidden"]) == (25, 0)


def spent(found: dict[str, Any]) -> list[dict[str, float]]:
    return [
        {each["of"]: each["epsilon"] for each in question["spent"]}
        for question in found["ledger"]["questions"]
    ]


def test_fresh_reports_add_up(opened: Open) -> None:
    plans = serials(4, tn.DirectEncoding(0.1, ["no", "yes"]))
    collection, store = opened(*plans)
    (family,) = collection.families
    for plan in plans[:3]:
        take(collection, store, [message_of(plan, "yes") for _ in range(30)])
    found = Results.of(store, family, least=20).described()
    # Nobody has answered under the last plan. In force, it counts.
    assert found["ledger"]["times"] == 3
    assert Fraction(3, 10) <= Fraction(found["ledger"]["epsilon"]) < Fraction(3, 10) + 1 / 10**15
    found = Results.of(store, family, least=20, current=plans[3]).described()
    assert spent(found) == [{"one report": 0.1, "4 reports of one person": 0.4}]
    assert found["ledger"]["epsilon"] == found["ledger"]["epsilon_unchanged"] == 0.4
    assert found["ledger"]["questions"][0]["plans"] == [plan.fingerprint for plan in plans]
    assert any("ε = 0.4 in total" in said for said in found["protection"])
    page = Results.of(store, family, least=20, current=plans[3]).page("Title")
    assert page is not None
    assert "What a person spends by reporting every time" in page
    assert "<dt>ε of 4 reports of one person</dt><dd>0.4</dd>" in page
    # Reports of several days are not those of as many people.
    words = " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())
    assert "30 people at most at one of the 4 times" in words
    assert "90 questions to people" in words
    assert [said for said in found["protection"] if said not in words] == []


def test_permanent_answers_have_an_epsilon_of_each_name(opened: Open) -> None:
    kept = tn.Memoized(tn.DirectEncoding(2.0, ["no", "yes"]), first_epsilon=1.5)
    days, other = serials(3, kept), tn.Plan(tn.DirectEncoding(0.5, 3), tn.Everyone())
    collection, store = opened(*days, other)
    for plan in (*days, other):
        take(collection, store, [message_of(plan, 1 if plan is other else "yes")])
    found = Results.of(store, collection.families[0], least=1).described()
    changing = "3 reports of one person whose answers may change at any time"
    assert spent(found) == [
        {
            "one report": kept.realized_epsilon,
            "all reports of an answer that stays the same": kept.lifetime_epsilon,
            changing: kept.spent_by_reports(3),
        },
        {"one report": 0.5},
    ]
    ledger = found["ledger"]
    assert ledger["times"] == 4
    assert ledger["epsilon"] >= Fraction(kept.spent_by_reports(3)) + Fraction(1, 2)
    assert ledger["epsilon_unchanged"] == kept.lifetime_epsilon + 0.5


def test_rounds_ask_each_person_once(opened: Open) -> None:
    first = tn.HeavyHitters(4.0, bits=8, step=2, keep=4).rounds()
    collection, store = opened(first.plan())
    take(collection, store, [message_of(first.plan(), 7)])
    found = Results.of(store, collection.families[0], least=1).described()
    assert any("a person in two rounds" in said for said in found["ledger"]["statements"])


def test_the_ledger_is_that_of_the_moment(serving: Callable[..., Running], tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    plans.mkdir()
    one, two = serials(2)
    one.write(plans / "1.json")
    server = serving(plans, "--least", 1)
    server.send([message_of(one, "yes")])
    assert server.results()["ledger"]["times"] == 1
    assert server.results()["ledger"]["epsilon"] == 3.0
    two.write(plans / "2.json")
    until(lambda: server.results()["ledger"]["times"] == 2)
    assert server.results()["ledger"]["epsilon"] == 6.0
    page = server.client.get("/results").text
    assert "<dt>ε of 2 reports of one person</dt><dd>6</dd>" in page
    described = server.client.get("/openapi.json").json()["components"]["schemas"]["results"]
    assert set(described["properties"]["ledger"]["properties"]) == set(server.results()["ledger"])
    assert json.dumps(server.results()["ledger"])
    assert server.stop() == 0


def test_a_question_without_answers_hides_no_other(opened: Open) -> None:
    """By chance nobody may have drawn a question yet."""
    asked = tn.SampledAttribute(3.0, {"tea": ["no", "yes"], "milk": ["none", "some", "much"]})
    plan = tn.Plan(asked, tn.Everyone())
    collection, store = opened(plan)
    answers = {"tea": "yes", "milk": "some"}
    # The first byte of a report is the number of its question.
    sent = [message_of(plan, answers) for _ in range(60)]
    of_tea = [each for each in sent if json.loads(each)["report"].startswith("00")]
    assert 5 < len(of_tea) < 60
    take(collection, store, of_tea)
    results = Results.of(store, collection.families[0], least=5)
    found = results.described()
    assert "reason" not in found
    shown = {(each["attribute"], each["label"]): each for each in found["estimates"]}
    assert shown["tea", "yes"]["frequency"] > 0.5
    assert [each["attribute"] for each in found["estimates"]] == ["tea"] * 2 + ["milk"] * 3
    for label in ("none", "some", "much"):
        one = shown["milk", label]
        assert one.pop("reason") == "this question has no answers yet"
        assert set(one.values()) == {"milk", label, None}
    page = results.page("Title")
    assert page is not None
    words = " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())
    assert "The question “milk” has no answers yet." in words
    assert "tea" in words
    assert "horvitz_thompson" not in page + json.dumps(found["estimates"])
    assert "rows. All of them" not in words
    assert "and 3 more" not in words


@pytest.mark.parametrize(
    "oracle",
    [QUESTION, tn.SampledAttribute(1.0, {"a": 2, "b": 2}), tn.mean.Duchi(1.0, (0, 1))],
)
@pytest.mark.parametrize("groups", [None, {"region": ["north"]}])
def test_nothing_received_is_said_in_plain_words(
    opened: Open, oracle: Any, groups: dict[str, list[str]] | None
) -> None:
    plan = tn.Plan(oracle, tn.Everyone(), groups=groups)
    collection, store = opened(plan)
    results = Results.of(store, collection.families[0], least=0)
    found = results.described()
    page = results.page("Title")
    assert found["estimates"] == []
    if groups is None:
        assert found["reason"] == "there are no answers yet"
        assert page is not None
        assert "There is no estimate: there are no answers yet." in page
    assert "divides by" not in (page or "") + json.dumps(found)


def test_numbers_without_answers_are_said_in_plain_words(opened: Open) -> None:
    plan = tn.Plan(tn.mean.Piecewise(1.0, (0, 1), dimensions=3), tn.Everyone())
    collection, store = opened(plan)
    # A report is about one of the three numbers.
    take(collection, store, [message_of(plan, [0.5] * 3)])
    results = Results.of(store, collection.families[0], least=1)
    assert results.described()["reason"] == "some of what is asked has no answers yet"
    assert results.described()["received"] == 1
    assert "Nothing can be shown yet: " in results.page("Title")


@pytest.mark.parametrize("groups", [None, {"region": ["north"]}])
def test_one_is_said_in_the_singular(opened: Open, groups: dict[str, list[str]] | None) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 2), tn.Everyone(), groups=groups)
    collection, store = opened(plan)
    nothing = Results.of(store, collection.families[0], least=1).described()
    assert nothing["reason"] == f"there are no reports{' of any group' if groups else ''} yet"
    take(collection, store, [message_of(plan, 1, "north" if groups else None)])
    page = Results.of(store, collection.families[0], least=1).page("Title")
    assert page is not None
    # A value does not go on in the next name.
    words = " ".join(unescape(re.sub("<[^>]*>", " | ", page)).split())
    assert "about 1 person, who reported." in words
    assert "1 bit" in words
    assert re.findall(r"\b1 (?:people|reports|bits|bytes)\b", words) == []
