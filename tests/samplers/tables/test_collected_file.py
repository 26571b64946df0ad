"""The file of a collected reference: what was written is read, and what is wrong is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from turnout.errors import CorruptDataError, InvalidValueError, UnsupportedVersionError
from turnout.samplers import CollectedReference, TableSampler, collect_reference
from turnout.samplers.tables.collected_file import read_collected, text_of
from turnout.samplers.tables.columns import columns_of

COLUMNS = {"a": ["p", "q"], "b": (0, 2), "c": (0.0, 1.0)}
PARTS = columns_of(COLUMNS)


@pytest.fixture(scope="module")
def collected() -> CollectedReference:
    frame = pd.DataFrame({"a": ["p", "q"] * 30, "b": [0, 1, 2] * 20, "c": [0.25, 0.75] * 30})
    return collect_reference(1.0, COLUMNS, frame, range(60), pairs=True, seed=1)


def test_what_was_written_is_read(collected: CollectedReference, tmp_path: Path) -> None:
    path = tmp_path / "around.json"
    path.write_text(text_of(collected, PARTS))
    found = read_collected(path, PARTS)
    assert (found.epsilon, found.users) == (collected.epsilon, collected.users)
    for read, known in ((found.marginals, collected.marginals), (found.pairs, collected.pairs)):
        assert list(read) == list(known)
        assert all(np.array_equal(read[name], known[name]) for name in known)  # type: ignore[index]
    one, other = (TableSampler(2.0, COLUMNS, reference=each) for each in (found, collected))
    assert all(
        np.array_equal(a, b)
        for (*_, a), (*_, b) in zip(
            one._public().reference.steps, other._public().reference.steps, strict=True
        )
    )


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    *inner, last, value = path

    def change(given: Any) -> None:
        for name in inner:
            given = given[name]
        given[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("epsilon", 0.0), "its epsilon"),
        (put("epsilon", -1.0), "its epsilon"),
        (put("epsilon", "1"), "turnout sample-reference writes these"),
        (put("users", 0), "its number of people"),
        (put("users", True), "its number of people"),
        (put("more", 1), "turnout sample-reference writes these"),
        (put("format", "turnout-plan"), "turnout sample-reference writes these"),
        (put("marginals", 0, 0, -0.1), "from 0 to 1, got -0.1"),
        (put("marginals", 0, 0, 1.5), "from 0 to 1, got 1.5"),
        (put("marginals", 0, 0, "a"), "from 0 to 1, got 'a'"),
        (put("marginals", 0, 0, 0.99), "add up to"),
        (put("marginals", 0, [1.0]), "another number of cells"),
        (put("marginals", []), "another number of columns"),
        (put("pairs", 0, 0, [1.0]), "another number of cells"),
        (put("pairs", 0, [[1.0]]), "another number of cells"),
        (put("pairs", [[[1.0]]]), "another number of columns"),
    ],
)
def test_what_is_wrong_is_refused(
    collected: CollectedReference,
    tmp_path: Path,
    change: Callable[[dict[str, Any]], None],
    said: str,
) -> None:
    given = json.loads(text_of(collected, PARTS))
    change(given)
    path = tmp_path / "around.json"
    path.write_text(json.dumps(given))
    with pytest.raises(CorruptDataError, match=said):
        read_collected(path, PARTS)


def test_another_version_and_other_columns_are_named(
    collected: CollectedReference, tmp_path: Path
) -> None:
    path = tmp_path / "around.json"
    path.write_text(text_of(collected, PARTS).replace('"version":1', '"version":2'))
    with pytest.raises(UnsupportedVersionError, match="has version 2"):
        read_collected(path, PARTS)
    path.write_text(text_of(collected, PARTS))
    with pytest.raises(InvalidValueError, match="other columns: 'b' differs"):
        read_collected(path, columns_of({**COLUMNS, "b": (0, 3)}))
