"""The one file that browsers load: made of its modules, and typed as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.loading import load

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "python" / "turnout" / "serve" / "static"
EXPORTED = re.compile(r"^export (?:async )?(?:class|function|const) (\w+)", re.MULTILINE)


def test_the_file_is_made_of_the_modules_in_the_tree() -> None:
    place = ROOT / "client" / "build.py"
    build = load(place, "client_build")
    written = (STATIC / "turnout.js").read_text()
    assert written == build.written(), "run: python client/build.py"
    assert set(EXPORTED.findall(written)) == set(build.PUBLIC)
    used = {name for text in build.modules().values() for name in build.imported(text)}
    assert used | {"plan", "outbox"} == {path.stem for path in place.parent.glob("*.js")}


def test_what_is_exported_is_typed() -> None:
    file, types = ((STATIC / f"turnout.{end}").read_text() for end in ("js", "d.ts"))
    found = re.findall(r"^export (?:class|function) (\w+)", types, re.MULTILINE)
    assert sorted(found) == sorted(EXPORTED.findall(file))
    codes = set(re.findall(r'new TurnoutError\(\s*"([\w-]+)"', file))
    documented = types[: types.index("readonly code")]
    assert {code for code in codes if f'"{code}"' not in documented} == set()


def members(text: str, name: str) -> str:
    """The inside of a class."""
    found = re.search(rf"^export (?:async )?class {name}\b.*?{{\n(.*?)^}}", text, re.M | re.S)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["Plan", "PermanentAnswers", "Outbox", "TurnoutError"])
def test_every_member_that_is_typed_is_there(name: str) -> None:
    file, types = ((STATIC / f"turnout.{end}").read_text() for end in ("js", "d.ts"))
    inside = members(file, name)
    typed = members(types, name)
    # There are a few more, which the modules use of each other.
    kinds = {
        r"^  (static )?(?:async )?(\w+)\(": r"^  (?:private )?(static )?(\w+)\(",
        r"^ +(?:get |this\.)()(\w+)(?:\(| = )": r"^  readonly ()(\w+):",
    }
    for has, says in kinds.items():
        said = set(re.findall(says, typed, re.MULTILINE)) - {("", "constructor")}
        assert said <= set(re.findall(has, inside, re.MULTILINE))


TSC = shutil.which("tsc")


@pytest.mark.slow
@pytest.mark.skipif(
    TSC is None, reason="TypeScript is not installed (on Debian: apt install node-typescript)"
)
def test_a_program_in_typescript_uses_it(tmp_path: Path) -> None:
    assert TSC is not None
    shutil.copy(Path(__file__).with_name("uses.ts"), tmp_path)
    shutil.copy(STATIC / "turnout.d.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    # What the program does wrong, and says so, is an error of the compiler if it is none.
    command = [TSC, "--noEmit", "--strict", "--target", "es2022", "--module", "node16", "uses.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_function_of_the_browser_decides() -> None:
    # Their last digits differ from browser to browser; what people read may be off by that.
    text = (STATIC / "turnout.js").read_text()
    said = re.search(r"^function bet\(.*?^}", text, re.MULTILINE | re.DOTALL)
    assert said is not None
    inexact = r"Math\.(exp|log|pow|sqrt|sin|cos|tan|cbrt|hypot|random)\w*|\*\* *-?\w+\.|toFixed"
    assert re.search(inexact, text.replace(said.group(), "")) is None
