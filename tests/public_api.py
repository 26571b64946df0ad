"""The public names of the package and how they are called, a line each: ``public_api.txt``.

``make public-api`` writes the list. Public is what a public module has in its ``__all__``, and what
the API page of the documentation shows besides. Without annotations: they may become more exact.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".txt")
PAGE = ROOT / "docs/reference/api.rst"

#: What has no place on Python 3.10, where Flower cannot be installed.
FLOWER = "turnout.federated.flower."

#: Methods with underscores that are called by what they stand for.
OPERATORS = {
    f"__{name}__"
    for name in (
        *("add", "and", "bytes", "call", "contains", "enter", "exit", "float", "getitem"),
        *("iadd", "int", "iter", "len", "mul", "next", "or", "rmul", "sub", "truediv"),
    )
}


def public_names(flower: bool = True) -> dict[str, Any]:
    """All public names, from their modules and from the page, and what they stand for."""
    found: dict[str, Any] = {}
    waiting = ["turnout"]
    while waiting:
        module = importlib.import_module(waiting.pop())
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                waiting.append(value.__name__)
            else:
                found[f"{module.__name__}.{name}"] = value
    for name in re.findall(r"^   ([A-Za-z_][\w.]*)$", PAGE.read_text(encoding="utf-8"), re.M):
        path = f"turnout.{name}"
        if flower or not path.startswith(FLOWER):
            module_name, _, last = path.rpartition(".")
            found[path] = getattr(importlib.import_module(module_name), last)
    # One thing may have several names: the shortest is first, and the others refer to it.
    return dict(sorted(found.items(), key=lambda item: (item[0].count("."), item[0])))


def default(value: Any) -> str:
    """Write a default so that every Python writes it alike."""
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    text = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def call(function: Callable[..., Any], bound: bool = False) -> str:
    """Write the parameters of a function; of a method without the object."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled, and says nothing
        return "(...)"
    texts: list[str] = []
    kinds: list[Any] = []
    for parameter in list(signature.parameters.values())[bound:]:
        kind = parameter.kind
        if kinds and kinds[-1] == parameter.POSITIONAL_ONLY != kind:
            texts.append("/")
        if kind == parameter.KEYWORD_ONLY and not {kind, parameter.VAR_POSITIONAL} & set(kinds):
            texts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        given = "" if parameter.default is parameter.empty else f"={default(parameter.default)}"
        texts.append(f"{stars}{parameter.name}{given}")
        kinds.append(kind)
    if kinds and kinds[-1] == inspect.Parameter.POSITIONAL_ONLY:
        texts.append("/")
    return f"({', '.join(texts)})"


def ours(kind: type) -> list[type]:
    """The classes of the package that a class derives from, itself the first."""
    return [one for one in kind.__mro__ if one.__module__.split(".")[0] == "turnout"]


def constructor(kind: type) -> str:
    """Write how an object of a class is made, if the package says how."""
    if issubclass(kind, Enum):
        return ""
    made = any("__init__" in vars(one) or "__new__" in vars(one) for one in ours(kind))
    return call(kind) if made and not getattr(kind, "_is_protocol", False) else ""


def members(kind: type) -> dict[str, str]:
    """Every public method and attribute of a class, as a line without the name of the class."""
    found: dict[str, str] = {}
    for one in reversed(ours(kind)):
        for name in [*inspect.get_annotations(one), *vars(one)]:
            if name.startswith("_") and name not in OPERATORS:
                continue
            value = vars(one).get(name)
            if isinstance(value, classmethod | staticmethod):
                text = f"{name}{call(value.__func__, isinstance(value, classmethod))}"
                found[name] = f"{text}  # {type(value).__name__}"
            elif callable(value) and not isinstance(value, type):
                found[name] = f"{name}{call(value, True)}"
            else:
                found[name] = name
    return found


def lines_of(path: str, value: Any, classes: dict[type, str]) -> Iterator[str]:
    """Write a public name: a class with what it adds to the public classes that it derives from."""
    if not isinstance(value, type):
        yield f"{path}{call(value) if inspect.isroutine(value) else ''}"
        return
    bases = [one for one in ours(value)[1:] if one in classes]
    derives = f"  # derives from {', '.join(classes[one] for one in bases)}" if bases else ""
    yield f"{path}{constructor(value)}{derives}"
    known = [members(one) for one in bases]
    for name, text in members(value).items():
        if not any(text == base.get(name) for base in known):
            yield f"{path}.{text}"


def written(flower: bool = True) -> list[str]:
    """Write all lines, sorted."""
    names = public_names(flower)
    first: dict[int, str] = {}
    classes: dict[type, str] = {}
    for path, value in names.items():
        first.setdefault(id(value), path)
        if isinstance(value, type):
            classes.setdefault(value, path)
    found: list[str] = []
    for path, value in names.items():
        if (inspect.isroutine(value) or isinstance(value, type)) and first[id(value)] != path:
            found.append(f"{path} = {first[id(value)]}")
        else:
            found += lines_of(path, value, classes)
    return sorted(found)


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("The list is written on Python 3.11 or later, where Flower can be installed")
    LIST.write_text("".join(f"{line}\n" for line in written()), encoding="utf-8")
