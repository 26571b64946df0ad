"""Write ``turnout.js``, the one file that browsers load, from the modules beside this script.

``python client/build.py`` writes it; ``tests/serve/test_client_file.py`` compares.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "python" / "turnout" / "serve" / "static" / "turnout.js"

#: The names that the file exports.
PUBLIC = ("Plan", "Outbox", "PermanentAnswers", "TurnoutError", "browserStorage", "memoryStorage")

HEAD = """\
/*
 * turnout in a browser: reads a signed plan, makes the message of an answer, and sends it.
 *
 * Made by client/build.py from the modules in client/: change those. Licence: that of turnout.
 */
"""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def imported(text: str) -> list[str]:
    """Return the names of the modules that one imports."""
    return _IMPORT.findall(text)


def modules() -> dict[str, str]:
    """Return all modules, each after those that it imports."""
    done: dict[str, str] = {}

    def put(name: str) -> None:
        text = (HERE / f"{name}.js").read_text()
        for needed in imported(text):
            if needed not in done:
                put(needed)
        done[name] = text

    put("plan")
    put("outbox")
    return done


def written() -> str:
    """Return the text of the file."""

    def public(match: re.Match[str]) -> str:
        return match.group() if match.group(1) in PUBLIC else ""

    parts = [_EXPORT.sub(public, _IMPORT.sub("", text)).strip() for text in modules().values()]
    return HEAD + "\n" + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(written())
