"""The messages that the core's tests keep: the client of browsers makes the same, in Node."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.serve.clients import needs_node, run
from tests.serve.vectors import FOLDER, lines

KEPT = [json.loads(line) for line in (FOLDER / "messages.jsonl").read_text().splitlines()]


def file_of(plan: dict[str, Any]) -> str:
    """Return the file of a plan that nobody signed."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"format":"turnout-plan-file","version":1,"plan":{text},"fingerprint":"{digest}"}}'


def job_of(case: dict[str, Any]) -> dict[str, Any]:
    """Return what the client is to do: each answer once for each seed."""
    answers = [answer for answer in case["answers"] for _ in range(case["seeds"])]
    seeds = [str(seed) for seed in range(len(answers))]
    return {"plan": file_of(case["plan"]), "answers": answers, "seeds": seeds, "most": 3}


@pytest.mark.everyday
@needs_node
def test_the_client_makes_the_messages_that_are_kept() -> None:
    for case, result in zip(KEPT, run(map(job_of, KEPT)), strict=True):
        assert result.get("messages") == case["messages"], case["name"]
        assert result.get("states", [None])[-1] == case.get("state"), case["name"]


def test_there_is_a_case_of_every_kind(kinds: Any) -> None:
    assert "".join(f"{line}\n" for line in lines()) == (FOLDER / "cases.tsv").read_text(), (
        "run: python -m tests.serve.vectors"
    )
    names = {case["plan"]["oracle"]["name"] for case in KEPT}
    assert names >= set(kinds.KINDS)
