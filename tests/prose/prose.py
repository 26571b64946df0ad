"""The sentences of our pages and texts, and what is wrong with them.

``python tests/prose/prose.py`` writes ``long.txt`` anew: how many sentences of a page, or of a
folder of Rust, are longer than :data:`LONGEST` words. ``python tests/prose/prose.py PAGE`` lists
what is wrong with one page, one module or one file of Rust.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("long.txt")

#: Words of the longest sentence that is read once.
LONGEST = 25

#: What a reader stumbles over, and what to write.
STYLE: dict[str, str] = {
    r"\b(is|are) there already\b": "already exists",
    r"\bas it was before\b": "name what it was",
    r"(?<!there )\bis none\b(?! of)": "does not exist, is not one, or what is wrong",
    r"\bthere twice\b": "duplicated",
    r"\bto and fro\b": "back and forth",
    r"\bBeside that stand": "also shows",
    r"\bfrom about as much\b": "about as much",
    r"\bof whom another row counts\b": "duplicate rows of a person",
    r"\bwhich do not say what they mean\b": "need their plan: pass --plan FILE",
    r"\bis not the one of its\b": "does not match its",
    r"\bfar too many to count\b": "a huge domain",
    r"\b[Ww]hoever calls it makes it\b": "name who makes it",
    r"\bwhat is to be\b": "what you want",
    r"\bin so far as\b": "as far as",
    r"\bthe like of\b": "such as",
    r"\bin the place of\b": "instead of",
    r"\bthe one or the other\b": "one or the other",
    r"\bfor ever\b": "forever",
    r"\bby no means\b": "not",
    r"\bsorry\b|\bplease\b|\bunfortunately\b": "leave it out",
    r"\b(simply|obviously|of course)\b": "leave it out",
}

_STYLE = {re.compile(pattern): better for pattern, better in STYLE.items()}

#: Directives whose content is not prose.
_CODE = re.compile(
    r"\.\. (code-block|code|math|plot|image|figure|raw|literalinclude|csv-table|toctree|"
    r"autosummary|autoclass|automodule|autofunction|currentmodule|module|highlight|testsetup|"
    r"testcode|testoutput|doctest|include|meta|parsed-literal|contents|_|\|)"
)


class Finding(NamedTuple):
    """One defect: where it is, and what it is."""

    line: int
    problem: str
    text: str

    def __str__(self) -> str:
        return f"{self.line}: {self.problem}: {self.text}"


def paragraphs(text: str, *, markdown: bool = False) -> Iterator[tuple[int, str]]:
    """Give each paragraph of prose with the number of its first line."""
    lines = text.splitlines()
    if markdown:
        lines = _without_fences(lines)
    skip: int | None = None  # the indentation at which a literal block began
    block: list[str] = []
    first = 0
    for number, line in enumerate([*lines, ""], start=1):
        indent = len(line) - len(line.lstrip())
        if skip is not None:
            if not line.strip() or indent > skip:
                continue
            skip = None
        if line.strip():
            if not block:
                first = number
                if _CODE.match(line.strip()):
                    skip = indent
                    continue
            elif re.match(r"([*+-]|\d+\.|#\.) ", line.strip()) or line.strip().startswith("- "):
                yield from _prose(first, block)
                block, first = [], number
            block.append(line.rstrip())
            continue
        if block:
            if block[-1].endswith("::"):
                skip = len(block[0]) - len(block[0].lstrip())
            yield from _prose(first, block)
        block = []


def _without_fences(lines: list[str]) -> list[str]:
    """Blank the fenced code and the tables of Markdown."""
    result, fenced = [], False
    for line in lines:
        fence = line.lstrip().startswith("```")
        result.append("" if fenced or fence or line.lstrip().startswith(("|", "<")) else line)
        fenced ^= fence
    return result


def _prose(first: int, block: list[str]) -> Iterator[tuple[int, str]]:
    """Give a block, unless it is code, a table or a title."""
    stripped = [line.strip() for line in block]
    if stripped[0].startswith((">>>", "$ ", "...", "+--", "|")):
        return
    rule = re.compile(r"^([=\-~^\"'#*+])\1{2,}( +\1+)*$")
    if any(rule.match(line) for line in stripped):
        return
    joined = " ".join(line for line in stripped if not re.match(r":[\w-]+:( |$)", line))
    joined = re.sub(r"^\.\. [\w-]+::", "", joined)
    joined = re.sub(r"^((\* )?- |[*+] |\d+\. |#\. )", "", joined.strip())
    if joined:
        yield first, joined


def plain(text: str) -> str:
    """Replace literals, roles and links by one word each."""
    text = re.sub(r":[\w:+-]+:`[^`]*`", "NAME", text)
    text = re.sub(r"``.+?``", "CODE", text)
    text = re.sub(r"`([^`<]+?)( <[^>]*>)?`_{0,2}", "NAME", text)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


def sentences(paragraph: str) -> list[str]:
    """Split a paragraph at the ends of its sentences."""
    return re.split(r"(?<=[.!?])[)\"*]*\s+(?=[\"(*\[]*[A-Z0-9])", plain(paragraph))


def words(sentence: str) -> int:
    """Count the words of a sentence."""
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z0-9]", word))


def long_sentences(text: str, *, markdown: bool = False) -> list[Finding]:
    """List the sentences that are too long."""
    return [
        Finding(line, f"{words(sentence)} words", sentence)
        for line, paragraph in paragraphs(text, markdown=markdown)
        for sentence in sentences(paragraph)
        if words(sentence) > LONGEST
    ]


def riddles(line: int, text: str) -> list[Finding]:
    """List what a reader stumbles over."""
    return [
        Finding(line, f"write {better!r}", found.group())
        for pattern, better in _STYLE.items()
        if (found := pattern.search(text))
    ]


def pages() -> list[Path]:
    """List the pages that people read."""
    found = [*ROOT.glob("docs/**/*.rst"), *ROOT.glob("*.md"), *ROOT.glob("examples/**/README.md")]
    return sorted([*found, ROOT / "rust/README.md"])


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Give each text of a module: docstrings, errors, help."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, " ".join(node.value.split())


def crates() -> dict[str, list[Path]]:
    """List the files of Rust of each folder that has documentation."""
    folders: dict[str, list[Path]] = {}
    for path in sorted([*ROOT.glob("rust/core/**/*.rs"), *ROOT.glob("rust/py/**/*.rs")]):
        parts = path.relative_to(ROOT).parts
        folders.setdefault("/".join(parts[: min(3, len(parts) - 1)]), []).append(path)
    return folders


def rustdoc(path: Path) -> str:
    """Give the documentation in a file of Rust, each line at its place.

    A list of errors is a sentence for each, and a "<" in code begins no link.
    """
    lines = path.read_text(encoding="utf-8").replace("<", " ").splitlines()
    found = (re.match(r"\s*//[/!] ?(.*)", line) for line in lines)
    return "\n".join(re.sub(r";(?= \[|$)", ".", line[1]) if line else "" for line in found)


def counts() -> dict[str, int]:
    """Count the long sentences of each page, and of each folder of Rust."""
    numbers = {
        str(path.relative_to(ROOT)): len(
            long_sentences(path.read_text(encoding="utf-8"), markdown=path.suffix == ".md")
        )
        for path in pages()
    }
    for folder, paths in crates().items():
        texts = [long_sentences(rustdoc(path), markdown=True) for path in paths]
        numbers[folder] = sum(map(len, texts))
    return numbers


def allowed() -> dict[str, int]:
    """Give how many long sentences each page may have."""
    rows = (line.split() for line in ALLOWED.read_text(encoding="utf-8").splitlines())
    return {page: int(number) for number, page in rows}


def main(arguments: list[str]) -> None:
    """List the findings of pages, or write the list of numbers anew."""
    if not arguments:
        rows = [f"{number} {page}\n" for page, number in counts().items() if number]
        ALLOWED.write_text("".join(rows), encoding="utf-8")
        return
    for name in arguments:
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            findings = [found for line, each in strings(path) for found in riddles(line, each)]
        else:
            text = rustdoc(path) if path.suffix == ".rs" else text
            markdown = path.suffix in {".md", ".rs"}
            findings = long_sentences(text, markdown=markdown)
            for line, paragraph in paragraphs(text, markdown=markdown):
                findings += riddles(line, paragraph)
        sys.stdout.writelines(f"{name}:{finding}\n" for finding in sorted(findings))


if __name__ == "__main__":
    main(sys.argv[1:])
