"""Pages are read once: short sentences, the usual words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.prose import prose

PACKAGE = sorted((prose.ROOT / "python/turnout").rglob("*.py"))


@pytest.mark.parametrize("page", prose.pages(), ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_a_page_has_no_more_long_sentences_than_it_had(page: Path) -> None:
    found = prose.long_sentences(page.read_text(encoding="utf-8"), markdown=page.suffix == ".md")
    most = prose.allowed().get(str(page.relative_to(prose.ROOT)), 0)
    assert len(found) <= most, "\n".join(map(str, found))


@pytest.mark.parametrize("folder", prose.crates())
def test_rustdoc_has_no_more_long_sentences_than_it_had_and_no_riddle(folder: str) -> None:
    long, riddles = [], []
    for path in prose.crates()[folder]:
        text, name = prose.rustdoc(path), path.relative_to(prose.ROOT)
        long += [f"{name}:{found}" for found in prose.long_sentences(text, markdown=True)]
        for line, paragraph in prose.paragraphs(text, markdown=True):
            riddles += [f"{name}:{found}" for found in prose.riddles(line, paragraph)]
    assert len(long) <= prose.allowed().get(folder, 0), "\n".join(long)
    assert not riddles, "\n".join(riddles)


def test_rustdoc_is_read_without_its_code(tmp_path: Path) -> None:
    file = tmp_path / "a.rs"
    word = "word " * 20
    file.write_text(f"/// [`A`] if {word}; [`B`] if\n/// {word}.\nlet a = 1; // {word * 2}\n")
    assert not prose.long_sentences(prose.rustdoc(file), markdown=True)
    file.write_text(f"fn a() {{}}\n/// {word}\n/// {word}\nfn b() {{}}\n")
    assert [found.line for found in prose.long_sentences(prose.rustdoc(file), markdown=True)] == [2]


def test_sentences_are_counted_without_code_tables_and_names() -> None:
    long = "word " * 26
    text = f"""
Title of {long}
===============

Short. {long}.
An item of :class:`~turnout.Plan` and ``a b c``:

* {long}
* short

.. code-block:: python

   {long}

>>> {long}

::

    {long}

====  ====
{long}
====  ====

Last {long}
"""
    found = prose.long_sentences(text)
    assert [finding.line for finding in found] == [5, 8, 25]


def test_a_riddle_is_found_with_the_better_word() -> None:
    (found,) = prose.riddles(3, "the output file is already there, and a.csv is there already")
    assert str(found) == "3: write 'already exists': is there already"


@pytest.mark.parametrize("page", prose.pages(), ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_a_page_has_no_riddle(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [
        riddle
        for line, paragraph in prose.paragraphs(text, markdown=page.suffix == ".md")
        for riddle in prose.riddles(line, paragraph)
    ]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PACKAGE}),
    ids=lambda path: str(path.relative_to(prose.ROOT)),
)
def test_texts_of_the_package_have_no_riddle(folder: Path) -> None:
    found = [
        f"{path.relative_to(prose.ROOT)}:{riddle}"
        for path in PACKAGE
        if path.parent == folder
        for line, text in prose.strings(path)
        for riddle in prose.riddles(line, text)
    ]
    assert not found, "\n".join(found)
