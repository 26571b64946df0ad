"""The one file that browsers load: made of its modules, and typed as it is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "python" / "turnout" / "serve" / "static"
EXPORTED = re.compile(r"^export (?:async )?(?:class|function|const) (\w+)", re.MULTILINE)


def test_the_file_is_made_of_the_modules_in_the_tree() -> None:
    place = ROOT / "client" / "build.py"
    spec = importlib.util.spec_from_file_location("build", place)
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
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


def test_no_function_of_the_browser_decides() -> None:
    # Their last digits differ from browser to browser; what people read may be off by that.
    text = (STATIC / "turnout.js").read_text()
    said = re.search(r"^function bet\(.*?^}", text, re.MULTILINE | re.DOTALL)
    assert said is not None
    inexact = r"Math\.(exp|log|pow|sqrt|sin|cos|tan|cbrt|hypot|random)\w*|\*\* *-?\w+\.|toFixed"
    assert re.search(inexact, text.replace(said.group(), "")) is None
