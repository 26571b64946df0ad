"""What all commands share: consoles, and the words of refusals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console


def output() -> Console:
    """Console on standard output: results."""
    return Console(highlight=False)


def messages() -> Console:
    """Console on standard error: notes, progress and errors."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print one line beside the results, on standard error."""
    messages().print(f"note: {text}", markup=False, style="dim", soft_wrap=True)


def note_seed(seed: int | None, harm: str) -> None:
    """Say beside the results what somebody can do who knows the seed, if there is one."""
    if seed is not None:
        note(f"made with --seed: use for tests only, because anybody who knows the seed can {harm}")


#: Arguments that commands call otherwise.
_OTHER_WORDS = {"bounds": "--mean", "group_by": "--by", "domain": "--labels", "id": "--id-column"}

#: How arguments begin a message that commands call by no name.
_NAMELESS = re.compile("^(data|paths): ")

#: How an object is described: a name, and what it was made of, which can be objects too.
_INSIDE = r"[^()]*"
for _ in range(3):
    _INSIDE = rf"(?:[^()]|\({_INSIDE}\))*"
_OBJECT = re.compile(rf"(\b[A-Z]\w*\({_INSIDE}\))")
_ARGUMENT = re.compile(r"([(,] ?)([a-z]\w*)=")


def in_options(text: str, options: Iterable[str]) -> str:
    """Write the arguments of Python in a message as the options that they come from.

    Examples
    --------
    >>> in_options("there already; resume=True goes on", ["--resume"])
    'there already; --resume goes on'
    >>> in_options("duplicates='first' needs id_column", ["--duplicates", "--id-column"])
    '--duplicates first needs --id-column'
    >>> in_options("it was begun with joint = ['a'], got []", ["--joint"])
    "it was begun with --joint = ['a'], got []"
    >>> in_options("participation is of local reports", ["--participation"])
    '--participation is of local reports'
    >>> in_options("people.csv: missing must be a label", ["--missing"])
    'people.csv: --missing must be a label'
    >>> in_options("seed must be a number, got Seed(seed=3)", ["--seed"])
    '--seed must be a number, got Seed(seed 3)'
    >>> in_options("data: 'people.txt' must end in .csv", [])
    "'people.txt' must end in .csv"
    """
    # Where else an argument is said to be is no matter of commands.
    text = without_argument(re.sub(r", of [\w ]+ and turnout\.[\w.]+,", "", text))
    known = list(options)
    words = {option[2:].replace("-", "_"): option for option in known}
    words |= {
        word: option
        for word, option in _OTHER_WORDS.items()
        if option in known and word not in words
    }
    pieces = _OBJECT.split(text)
    # Every second one describes an object: what it was made of is no option here.
    pieces[::2] = [_translated(piece, words) for piece in pieces[::2]]
    pieces[1::2] = [_ARGUMENT.sub(r"\1\2 ", piece).replace("()", "") for piece in pieces[1::2]]
    return "".join(pieces)


def without_argument(text: str) -> str:
    """Leave out the argument that a message begins with, where commands call it by no name."""
    return _NAMELESS.sub("", text)


def _translated(text: str, words: dict[str, str]) -> str:
    for word, option in words.items():
        alone = rf"(?<![\w./'-]){word}"
        text = re.sub(rf"{alone}=? \({option}\)", option, text)
        text = re.sub(rf"{alone}=True\b", option, text)
        text = re.sub(rf"{alone}=['\"]?([\w.]+)['\"]?", rf"{option} \1", text)
        text = re.sub(rf"^{word}(?= (?:must|is|needs|applies|conflicts) |:|\[)", option, text)
        text = re.sub(rf"(?<=: ){word}(?= must )", option, text)
        text = re.sub(rf"(?<= with ){word}(?= = )", option, text)
        if "_" in word:
            text = re.sub(rf"{alone}(?![\w./'=-])", option, text)
    return text
