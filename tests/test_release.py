"""What a release says of itself is the same everywhere, and its pages link to what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]

#: The keys of the Citation File Format 1.2.0.
REQUIRED = ["authors", "cff-version", "message", "title"]
OPTIONAL = """
    abstract commit contact date-released doi identifiers keywords license license-url
    preferred-citation references repository repository-artifact repository-code type url version
"""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def value(name: str, pattern: str) -> str:
    found = re.search(pattern, read(name), re.MULTILINE)
    assert found is not None, f"{name} has no {pattern}"
    return found[1]


@pytest.fixture(scope="module")
def citation() -> Any:
    return yaml.load(read("CITATION.cff"), yaml.BaseLoader)


def test_the_citation_has_the_keys_of_its_format(citation: dict[str, Any]) -> None:
    assert set(REQUIRED) <= set(citation) <= {*REQUIRED, *OPTIONAL.split()}
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert all(author.keys() == {"name"} for author in citation["authors"])
    if "date-released" in citation:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", citation["date-released"])


def test_the_citation_says_what_the_package_says(citation: dict[str, Any]) -> None:
    assert citation["version"] == value("Cargo.toml", r'^version = "(.+)"$')
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        core = value(lock, r'^name = "turnout-core"\nversion = "(.+)"$')
        assert core == citation["version"], lock
    assert value("CHANGELOG.md", r"^## (\S+)") == citation["version"]
    assert citation["license"] == value("pyproject.toml", r'^license = "(.+)"$')
    keywords = value("pyproject.toml", r"^keywords = \[(.+)\]$")
    assert citation["keywords"] == re.findall(r'"(.+?)"', keywords)


def test_the_distribution_of_the_papers_is_of_the_same_release(citation: dict[str, Any]) -> None:
    place = "reproduce/pyproject.toml"
    assert value(place, r'^version = "(.+)"$') == citation["version"]
    assert value(place, r'"turnout\[.+\]==(.+?)"') == citation["version"]
    for line in (r"^license = (.+)$", r"^requires-python = (.+)$"):
        assert value(place, line) == value("pyproject.toml", line)
    assert read("reproduce/LICENSE") == read("LICENSE")
    name = value(place, r'^name = "(.+)"$')
    assert value("pyproject.toml", r'^reproduce = \["(.+)"\]$') == name


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md", "README.md"])
def test_links_within_the_repository_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", read(page)):
        if not target.startswith("https://"):
            assert (ROOT / target).exists(), target


def test_the_checklist_names_files_that_are_there() -> None:
    checklist = read("CONTRIBUTING.md").split("\n## Releasing\n")[1].split("\n## ")[0]
    named = re.findall(r"`([\w/.]+\.(?:md|toml|lock|txt|rst|py|cff))`", checklist)
    assert len(named) > 5
    for name in named:
        assert (ROOT / name).exists(), name
    for workflow in re.findall(r"`(\w+\.yml)`", checklist):
        assert (ROOT / ".github/workflows" / workflow).exists(), workflow
