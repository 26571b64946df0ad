"""Workflows, hooks and templates are what they must be, and name what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = {
    name
    for names in re.findall(r"^([a-z][a-z -]*):", MAKEFILE, re.MULTILINE)
    for name in names.split()
}
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def content(file: Path) -> Any:
    """Read a file, in which ``on`` is a word and not true."""
    text = file.read_text(encoding="utf-8")
    return yaml.safe_load(re.sub(r"^on:", '"on":', text, flags=re.MULTILINE))


def steps(file: Path) -> list[dict[str, Any]]:
    """All steps of a workflow."""
    jobs = content(file)["jobs"].values()
    return [step for job in jobs for step in job.get("steps", [])]


def commands(file: Path) -> str:
    """What the steps of a workflow run."""
    return "\n".join(step["run"] for step in steps(file) if "run" in step)


def ids(file: Path) -> str:
    return file.name


def test_there_are_files_to_look_at() -> None:
    assert {file.name for file in WORKFLOWS} == {"benches.yml", "tests.yml", "wheels.yml"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=ids)
def test_a_workflow_has_what_one_needs(file: Path) -> None:
    workflow = content(file)
    assert {"name", "on", "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "runs-on" in job or "uses" in job, name
        needed = job.get("needs", [])
        assert set(needed) <= set(workflow["jobs"]), f"{name} needs {needed}"


@pytest.mark.parametrize("file", WORKFLOWS, ids=ids)
def test_actions_are_those_of_a_major_version(file: Path) -> None:
    used = [step["uses"] for step in steps(file) if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@(release/)?v\d+", action), action


@pytest.mark.parametrize("file", WORKFLOWS, ids=ids)
def test_a_workflow_names_targets_and_files_that_are_there(file: Path) -> None:
    for target in re.findall(r"\bmake ([a-z-]+)", file.read_text(encoding="utf-8")):
        assert target in TARGETS, f"make {target}"
    workflow = content(file)
    named = workflow.get("env", {}).get("WHEEL_TESTS", "").split()
    named += [job["uses"] for job in workflow["jobs"].values() if "uses" in job]
    for path in (workflow["on"].get("pull_request") or {}).get("paths", []):
        named.append(path.removesuffix("/**"))
    for path in named:
        assert (ROOT / path).exists(), path


def test_the_workflow_runs_what_the_check_runs() -> None:
    check = (ROOT / ".ci/run").read_text(encoding="utf-8")
    expected = re.findall(r"^make (.+)$", check, re.MULTILINE)
    assert expected
    run = commands(ROOT / ".github/workflows/tests.yml")
    assert re.findall(r"^make (\S+)", run, re.MULTILINE) == expected


def test_every_wheel_is_tried_before_all_are_published() -> None:
    jobs = content(ROOT / ".github/workflows/wheels.yml")["jobs"]
    made = {one["name"] for one in jobs["wheel"]["strategy"]["matrix"]["include"]} | {"sdist"}
    tried = {one["name"] for one in jobs["try"]["strategy"]["matrix"]["include"]}
    alpine = jobs["try-musllinux"]["strategy"]["matrix"]["include"]
    assert tried | {f"musllinux-{one['machine']}" for one in alpine} == made
    assert {"try", "try-reproduce", "try-musllinux", "tests"} <= set(jobs["publish"]["needs"])
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    permitted = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert permitted == {"publish"}


def test_the_oldest_python_is_tried() -> None:
    said = re.search(r'requires-python = ">=(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert said is not None
    oldest = said[1]
    binding = (ROOT / "rust/py/Cargo.toml").read_text(encoding="utf-8")
    assert f"abi3-py{oldest.replace('.', '')}" in binding
    assert f"cp{oldest.replace('.', '')}-abi3" in commands(ROOT / ".github/workflows/wheels.yml")
    tests = content(ROOT / ".github/workflows/tests.yml")["jobs"]["everyday"]
    assert tests["strategy"]["matrix"]["python"][0] == oldest


def test_hooks_are_commands_of_the_everyday_check() -> None:
    known = [line.split() for line in MAKEFILE.splitlines() if line.startswith("\t")]
    (local,) = content(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        if hook.get("stages") == ["commit-msg"]:
            continue
        words = hook["entry"].replace("build/test/", "$(TESTING)/").split()
        after = [line[len(words) :] for line in known if line[: len(words)] == words]
        assert after, hook["entry"]
        assert not after[0] or after[0][0].startswith("$(if"), f"{hook['entry']} {after[0]}"
        assert hook["language"] == "system"
        assert hook["pass_filenames"] is False


def test_a_long_subject_of_a_commit_is_refused() -> None:
    (local,) = content(ROOT / ".pre-commit-config.yaml")["repos"]
    (hook,) = (one for one in local["hooks"] if one.get("stages") == ["commit-msg"])
    assert (hook["language"], hook["args"]) == ("pygrep", ["--multiline", "--negate"])
    for subject, accepted in (("A" * 72, True), ("A" * 73, False), ("a lower case", False)):
        assert bool(re.search(hook["entry"], f"{subject}\n\nWhy.\n")) == accepted, subject


def test_dependabot_looks_where_dependencies_are_named() -> None:
    updates = content(ROOT / ".github/dependabot.yml")["updates"]
    names = {"cargo": "Cargo.toml", "pip": "pyproject.toml", "github-actions": ".github/workflows"}
    assert [one["package-ecosystem"] for one in updates] == list(names)
    for one in updates:
        for folder in one.get("directories", [one.get("directory")]):
            place = ROOT / folder.lstrip("/")
            assert (place / names[one["package-ecosystem"]]).exists() or [*place.glob("req*.txt")]


@pytest.mark.parametrize("file", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/[!c]*.yml")), ids=ids)
def test_an_issue_form_is_one(file: Path) -> None:
    form = content(file)
    assert {"name", "description", "body"} <= set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert asked
    for part in asked:
        assert part["type"] == "textarea"
        assert part["attributes"]["label"]
    assert len({part["id"] for part in asked}) == len(asked)
    for path in re.findall(r"`([\w/]+\.md)`", file.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path
