"""One randomizer of every kind, and the page that says which verbs each of them has.

The tests of a verb ask :func:`page_with` for the page with what they found in it, and compare.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import turnout as tn
from turnout import _kinds
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.attributes import PaddedOracle, Questions
from turnout.products import ProductDomain
from turnout.testing import VERBS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "verbs.rst"

#: The verbs of the contract, and those that need more: a page, commands, a cluster, devices.
COLUMNS = (*VERBS, "page", "commands", "Ray", "message in Rust", "message in a browser")

QUESTIONS = {"sex": ["f", "m"], "age": 4}

Cells = dict[tuple[str, str], str]


def kinds() -> dict[str, Any]:
    """One randomizer of every kind that turnout has, by its name in documents."""
    needed: dict[str, Any] = {
        "duchi": tn.mean.Duchi(1.0, (0, 10)),
        "hybrid": tn.mean.Hybrid(1.0, (0, 10)),
        "joint_table": tn.JointTable(1.0, {"sex": ["f", "m"], "age": 5}),
        "memoized": tn.Memoized(tn.DirectEncoding(2.0, 5), first_epsilon=1.0),
        "pair_tables": tn.PairTables(1.0, QUESTIONS | {"vote": ["no", "yes"]}),
        "padded": PaddedOracle(1.0, 5, oracle=tn.DirectEncoding(1.0, 5), own_probability=0.5),
        "piecewise": tn.mean.Piecewise(1.0, (0, 10)),
        "prefixes": tn.HeavyHitters(1.0, bits=8).rounds().current,
        "sampled_attribute": tn.SampledAttribute(1.0, QUESTIONS),
        "second_round": SecondRound(
            5.0, 5, oracle=tn.DirectEncoding(4.0, 5), rates=[0.2, 0.25, 0.3, 0.35, 0.4]
        ),
        "split_budget": tn.SplitBudget(1.0, QUESTIONS),
        "square_wave": tn.SquareWave(1.0, (0, 10), bins=20),
    }
    return {
        name: needed[name] if name in needed else kind(1.0, 5)
        for name, kind in _kinds.known().items()
        if kind.__module__.startswith("turnout.")
    }


KINDS = kinds()


def answers_of(oracle: Any) -> Any:
    """Two hundred answers of its domain, not all alike."""
    if isinstance(oracle.domain, ProductDomain):
        return [oracle.domain.labels[place % oracle.domain.size] for place in range(200)]
    if isinstance(oracle.domain, tn.Domain):
        return np.arange(200) % oracle.domain.size
    if isinstance(oracle.domain, Questions):
        return [
            {"sex": "fm"[place % 2], "age": place // 2 % 4, "vote": ("no", "yes")[place % 3 == 0]}
            for place in range(200)
        ]
    if oracle.domain.dimensions == 1:
        return np.linspace(oracle.domain.low, oracle.domain.high, 200)
    return np.random.default_rng(1).uniform(-1, 1, (200, oracle.domain.dimensions))


def table_of(oracle: Any) -> pa.Table:
    """The answers as a table: one column, or one for each question."""
    answers = answers_of(oracle)
    if not isinstance(oracle.domain, (ProductDomain, Questions)):
        return pa.table({"answer": np.asarray(answers)})
    names = list(oracle.domain.columns)
    rows = [
        [each[name] for name in names] if isinstance(each, Mapping) else each for each in answers
    ]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def page_cells() -> Cells:
    """What the page says of each kind and verb: "works", or why it is refused."""
    page = PAGE.read_text(encoding="utf-8").split("\n\nQuestions that take rounds")[0]
    shown = {type(oracle).__qualname__: name for name, oracle in KINDS.items()}
    lists = dict(re.findall(r"^\| (Kinds|Verbs): (.*?)\.$", page, re.MULTILINE | re.DOTALL))
    kinds, verbs = (re.split(r",\s+", lists[name].replace("``", "")) for name in ("Kinds", "Verbs"))
    cells = {(shown[kind], verb): "works" for kind in kinds for verb in verbs}
    for row in re.split(r"\n   \* - ", page)[2:]:
        refused, verb, reason = row.strip().split("\n     - ")
        for kind in refused.replace("``", "").split(", "):
            cells[shown[kind], verb] = reason.strip("`")
    return cells


def _line(name: str, values: Iterable[str]) -> list[str]:
    """A line block of the page."""
    text = f"| {name}: {', '.join(values)}."
    return textwrap.wrap(text, 118, subsequent_indent="  ", break_on_hyphens=False)


def page_with(found: Cells) -> str:
    """The page: the kinds, the verbs, and what was refused, with the reason."""
    wanted = {(name, verb): "was not run" for name in KINDS for verb in COLUMNS}
    cells = wanted | page_cells() | found
    shown = {name: f"``{type(oracle).__qualname__}``" for name, oracle in KINDS.items()}
    refused: dict[tuple[str, str], list[str]] = {}
    for name in KINDS:
        for verb in COLUMNS:
            if cells[name, verb] != "works":
                refused.setdefault((verb, cells[name, verb]), []).append(shown[name])
    lines = [
        *("Kinds and verbs", "===============", ""),
        "Every kind of question in the first list supports every verb in the second, except for",
        "the pairs in the table. Tests run each pair, and compare the outcome with this page.",
        *("", *_line("Kinds", shown.values())),
        *("", *_line("Verbs", COLUMNS)),
        *("", ".. list-table::", "   :header-rows: 1", "   :widths: 22 14 64", ""),
        *("   * - kind", "     - verb", "     - why it is refused"),
    ]
    for (verb, reason), names in sorted(refused.items()):
        lines += [f"   * - {', '.join(names)}", f"     - {verb}", f"     - ``{reason}``"]
    return "\n".join([*lines, ""])


def compare(found: Cells) -> None:
    """Refuse a page that says something else than what was found."""
    page, expected = PAGE.read_text(encoding="utf-8"), page_with(found)
    assert page.startswith(expected), f"docs/reference/verbs.rst must begin with:\n{expected}"
