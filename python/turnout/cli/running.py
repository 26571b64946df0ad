"""What all commands share: consoles, refusals as one line, checks of option values."""

from __future__ import annotations

import errno
import functools
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import typer
from rich.console import Console

from turnout.errors import InvalidValueError, TurnoutError

__all__ = [
    "check_epsilon",
    "check_level",
    "check_rate",
    "messages",
    "moment",
    "note",
    "output",
    "refuse_overwriting_inputs",
    "refusing",
    "was_given",
]

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

    Every :class:`turnout.errors.TurnoutError` and every :class:`OSError` is a refusal; any other
    exception is a defect and keeps its traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except TurnoutError as error:
            _exit(str(error))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _exit(_describe(error))
        except MemoryError as error:
            _exit(f"there is not enough memory: {error}")

    return cast("Command", wrapped)


def _exit(message: str) -> NoReturn:
    line = " ".join(message.split())
    messages().print(f"error: {line}", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def _describe(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return reason
    name = error.filename.decode() if isinstance(error.filename, bytes) else str(error.filename)
    return f"{name}: {reason}"


def refuse_overwriting_inputs(target: Path, inputs: list[Path]) -> None:
    """Refuse to write a result over a file that it is made from."""
    for source in inputs:
        if target.exists() and source.exists() and target.samefile(source):
            raise InvalidValueError(f"{target}: is an input; name another file for the output")


def refuse_drawing_again(target: Path, kind: str) -> None:
    """Refuse to replace what was drawn for people before: somebody may have it already."""
    if target.exists():
        raise InvalidValueError(
            f"{target} is there already: to draw for the same people again spends epsilon again; "
            f"take another name, or --overwrite if nobody has the old {kind}"
        )


def check_epsilon(value: float) -> float:
    """Accept a finite epsilon above zero."""
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value} is not a finite number above 0")
    return value


def check_rate(value: float) -> float:
    """Accept a participation rate above 0 and not above 1."""
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{value} is not above 0 and at most 1")
    return value


def check_level(value: float) -> float:
    """Accept a confidence level strictly between 0 and 1."""
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1 (0.95 stands for 95 %)")
    return value


def moment(option: str, text: str | None) -> datetime | None:
    """Read a moment with its time zone; None if there is none."""
    if text is None:
        return None
    try:
        # Python 3.10 does not read the Z.
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        if found.utcoffset() is not None:
            return found
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{text!r} is no time with a time zone, such as 2030-12-31T00:00:00Z", param_hint=option
    )


def was_given(context: typer.Context, name: str) -> bool:
    """Tell whether a parameter was written, even if it is what the default is."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
