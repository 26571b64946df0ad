"""What all commands share: consoles, refusals as one line, checks of option values."""

from __future__ import annotations

import errno
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar, cast, get_type_hints

import typer
from rich.console import Console

from turnout.errors import TurnoutError

Command = TypeVar("Command", bound=Callable[..., None])


def output() -> Console:
    """Console on standard output: results."""
    return Console(highlight=False)


def messages() -> Console:
    """Console on standard error: notes, progress and errors."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print one line beside the results, on standard error."""
    messages().print(f"note: {text}", markup=False, style="dim", soft_wrap=True)


def refusing(command: Command) -> Command:
    """Turn what a command refuses to do into one line on standard error and exit code 1.

    The line speaks of options where the exception speaks of arguments.

    Every :class:`turnout.errors.TurnoutError` and every :class:`OSError` is a refusal; any other
    exception is a defect and keeps its traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except TurnoutError as error:
            _exit(in_options(str(error), _options(command)))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _exit(_describe(error))
        except MemoryError as error:
            _exit(f"there is not enough memory: {error}")

    return cast("Command", wrapped)


def _options(command: Callable[..., None]) -> list[str]:
    """List the long options of a command: what must be named is an option."""
    hints = get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            said = getattr(hints[name], "__metadata__", (None,))[0]
            # In a type the first word of an option stands where its default would.
            words = (getattr(said, "default", None), *getattr(said, "param_decls", ()))
            long = [str(word).split("/")[0] for word in words if str(word).startswith("--")]
            found += long or [f"--{name.replace('_', '-')}"]
    return found


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
    text = _NAMELESS.sub("", re.sub(r", of [\w ]+ and turnout\.[\w.]+,", "", text))
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


def _translated(text: str, words: dict[str, str]) -> str:
    for word, option in words.items():
        alone = rf"(?<![\w./'-]){word}"
        text = re.sub(rf"{alone}=? \({option}\)", option, text)
        text = re.sub(rf"{alone}=True\b", option, text)
        text = re.sub(rf"{alone}=['\"]?([\w.]+)['\"]?", rf"{option} \1", text)
        text = re.sub(rf"^{word}(?= (?:must|is|needs) |:|\[)", option, text)
        text = re.sub(rf"(?<=: ){word}(?= must )", option, text)
        text = re.sub(rf"(?<= with ){word}(?= = )", option, text)
        if "_" in word:
            text = re.sub(rf"{alone}(?![\w./'=-])", option, text)
    return text


def _exit(message: str) -> NoReturn:
    line = " ".join(message.split())
    messages().print(f"error: {line}", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def _describe(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return reason
    name = error.filename.decode() if isinstance(error.filename, bytes) else str(error.filename)
    return f"{name}: {_NAMELESS.sub('', reason)}"
