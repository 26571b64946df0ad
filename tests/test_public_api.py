"""Public names and how they are called are those of the list, and it is said what may change."""

from __future__ import annotations

import difflib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.loading import load

PLACE = Path(__file__).with_name("public_api.py")
PAGE = Path(__file__).parents[1] / "docs/reference/stability.rst"
FLOWER = importlib.util.find_spec("flwr") is not None

#: How many lines the list may have: what is new is worth a line, or takes the place of another.
MOST = 937


@pytest.fixture(scope="module")
def api() -> ModuleType:
    return load(PLACE)


@pytest.fixture(scope="module")
def listed(api: ModuleType) -> list[str]:
    lines = api.LIST.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if FLOWER or not line.startswith(api.FLOWER)]


@pytest.mark.everyday
def test_names_parameters_and_defaults_are_those_of_the_list(
    api: ModuleType, listed: list[str]
) -> None:
    changes = [*difflib.unified_diff(listed, api.written(FLOWER), "listed", "found", n=0)]
    advice = "The public API changed. If that is meant: make public-api, and a line in CHANGELOG.md"
    assert not changes, "\n".join([advice, *changes])


def test_the_list_is_short_enough_for_one_person(api: ModuleType) -> None:
    lines = api.LIST.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST, "take away as many public names as are new, or make them private"


def test_nobody_is_shown_a_private_parameter(listed: list[str]) -> None:
    shown = [line for line in listed if re.search(r"[(, ]_\w+[=,)]", line)]
    assert not shown, "a parameter that begins with an underscore: field(init=False), and settle"


#: Words that the glossary replaced by one that is used everywhere.
REPLACED = {
    r"\.(load|save)(_\w+)?\(": "read, write",
    r"\w_seed\b|\bseed_\w": "seed, of functions; random_state, of samplers",
    r"[(, ]dimension\b": "dimensions",
    r"[(, ](lower|upper)(?!=True)[=,)]": "low, high",
}


@pytest.mark.parametrize("word", REPLACED)
def test_no_word_comes_back_that_the_glossary_replaced(listed: list[str], word: str) -> None:
    found = [line for line in listed if re.search(word, line)]
    assert not found, f"the glossary says: {REPLACED[word]}"


def test_only_samplers_have_a_random_state(listed: list[str]) -> None:
    of_scikit_learn = {line.split(".")[1] for line in listed if "random_state" in line}
    assert of_scikit_learn == {"samplers"}


def test_a_line_says_how_a_thing_is_called(api: ModuleType) -> None:
    def called(a, /, b, *c, d=1, e: int = 2, **f): ...  # type: ignore[no-untyped-def]
    def named(*, one="x", two=(None, 0.5), three=str): ...  # type: ignore[no-untyped-def]
    def other(a, /): ...  # type: ignore[no-untyped-def]

    assert api.call(called) == "(a, /, b, *c, d=1, e=2, **f)"
    assert api.call(named) == "(*, one='x', two=(None, 0.5), three=str)"
    assert api.call(other) == "(a, /)"
    assert api.call(other, bound=True) == "()"


def said() -> dict[str, list[str]]:
    """What the page names in its two tables."""
    parts = re.split(r"^(Stable|Experimental)\n-+\n", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return {
        parts[place]: [f"turnout.{name}" for name in re.findall(r"``([\w.]+)``", parts[place + 1])]
        for place in (1, 3)
    }


def test_every_public_name_is_stable_or_experimental(api: ModuleType, listed: list[str]) -> None:
    of = {name: word for word, names in said().items() for name in names}
    assert len(of) == sum(len(names) for names in said().values()), "a name stands there twice"
    inherited = api.bases(FLOWER)  # as stable as the class that inherits from them
    unsaid, used = [], set()
    for line in listed:
        if " = " in line.split("(")[0]:
            continue  # another name of a thing
        name = re.split(r"[( ]", line)[0]
        parts = name.split(".")
        above = [".".join(parts[:length]) for length in range(len(parts), 1, -1)]
        found = next((one for one in above if one in of), None)
        if found is None and not inherited & set(above):
            unsaid.append(name)
        elif found is not None:
            used.add(found)
    assert not unsaid, f"neither stable nor experimental in {PAGE.name}: {unsaid}"
    assert set(of) == used, f"{PAGE.name} names what is not public: {set(of) - used}"
