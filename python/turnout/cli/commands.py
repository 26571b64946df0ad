"""What makes a command of a function: its options one by one, and refusals as one line."""

from __future__ import annotations

import errno
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NoReturn, get_type_hints

import typer
from typer.models import ArgumentInfo

from turnout.cli.running import in_options, messages, without_argument
from turnout.errors import TurnoutError

Command = Callable[..., None]


def command(function: Command) -> Command:
    """Make a command of a function.

    If the type of a parameter is a dataclass, its fields are options of the command line, and the
    function gets the object. An error of the function becomes one line on standard error and exit
    code 1. The line names options where the exception names arguments.

    Every :class:`turnout.errors.TurnoutError` and every :class:`OSError` is a refusal; any other
    exception is a defect and keeps its traceback.

    Examples
    --------
    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Output:
    ...     target: str
    ...     overwrite: bool = False
    >>> @command
    ... def show(*, output: Output) -> None:
    ...     print(output)
    >>> list(inspect.signature(show).parameters)
    ['target', 'overwrite']
    >>> show(target="shares.csv", overwrite=True)
    Output(target='shares.csv', overwrite=True)
    """
    hints = get_type_hints(function, include_extras=True)
    objects: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(function)
    def wrapped(**given: Any) -> None:
        try:
            for name, kind in objects.items():
                given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
            function(**given)
        except TurnoutError as error:
            _exit(in_options(str(error), long_options(wrapped)))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _exit(_describe(error))
        except MemoryError as error:
            _exit(f"there is not enough memory: {error}")

    wrapped.objects = tuple(objects.values())  # type: ignore[attr-defined]
    # What must be given comes first.
    flat = sorted(_one_by_one(function, hints), key=lambda each: each.default is not each.empty)
    # Typer reads the options from these two.
    wrapped.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in flat}
    return wrapped


def _one_by_one(function: Command, hints: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Give the parameters of a function, and for an object of options each of its fields."""
    for name, parameter in inspect.signature(function).parameters.items():
        if not is_dataclass(hints[name]):
            yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name])
            continue
        inner = get_type_hints(hints[name], include_extras=True)
        for each in fields(hints[name]):
            default = parameter.empty if each.default is MISSING else each.default
            yield inspect.Parameter(
                each.name, parameter.KEYWORD_ONLY, default=default, annotation=inner[each.name]
            )


def long_options(command: Command) -> list[str]:
    """List the long options of a command: what must be named is an option."""
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        said = getattr(parameter.annotation, "__metadata__", (None,))[0]
        if parameter.annotation is typer.Context or isinstance(said, ArgumentInfo):
            continue
        # In a type the first word of an option stands where its default would.
        words = (getattr(said, "default", None), *getattr(said, "param_decls", ()))
        long = [str(word).split("/")[0] for word in words if str(word).startswith("--")]
        found += long or [f"--{name.replace('_', '-')}"]
    return found


def _exit(message: str) -> NoReturn:
    line = " ".join(message.split())
    messages().print(f"error: {line}", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def _describe(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return reason
    name = error.filename.decode() if isinstance(error.filename, bytes) else str(error.filename)
    return f"{name}: {without_argument(reason)}"
