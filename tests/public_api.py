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


def parameters(kind: type) -> set[str]:
    """The names of what a class is made with: attributes that have them are not listed again."""
    return set(inspect.signature(kind).parameters) if constructor(kind) else set()


def members(kind: type) -> dict[str, str]:
    """Every public method and attribute of a class, as a line without the name of the class."""
    found: dict[str, str] = {}
    for name in [*inspect.get_annotations(kind), *vars(kind)]:
        if name.startswith("_") and name not in OPERATORS:
            continue
        value = vars(kind).get(name)
        if isinstance(value, classmethod | staticmethod):
            text = f"{name}{call(value.__func__, isinstance(value, classmethod))}"
            found[name] = f"{text}  # {type(value).__name__}"
        elif callable(value) and not isinstance(value, type):
            found[name] = f"{name}{call(value, True)}"
        else:
            found[name] = name
    return found


def lines_of(path: str, kind: type, paths: dict[type, str]) -> Iterator[str]:
    """Write a class: what it adds to the classes that it derives from."""
    bases = [one for one in ours(kind)[1:] if one in paths]
    nearest = [one for one in kind.__bases__ if one in paths]
    derives = f"  # derives from {', '.join(paths[one] for one in nearest)}" if nearest else ""
    # A base with an underscore is nobody's to make: what it defines is public, and not itself.
    if not kind.__name__.startswith("_"):
        yield f"{path}{constructor(kind)}{derives}"
    known = {text for one in bases for text in members(one).values()} | parameters(kind)
    known |= {name for one in bases for name in parameters(one)}
    for text in members(kind).values():
        if text not in known:
            yield f"{path}.{text}"


def with_bases(classes: dict[type, str]) -> dict[type, str]:
    """Add the classes of ours that public ones derive from: what they define is public too."""
    found = dict(classes)
    for kind in classes:
        for one in ours(kind)[1:]:
            found.setdefault(one, f"{one.__module__}.{one.__qualname__}")
    return found


def bases(flower: bool = True) -> set[str]:
    """Where the classes stand that are listed for what public ones inherit from them."""
    public = {kind: "" for kind in public_names(flower).values() if isinstance(kind, type)}
    return {path for path in with_bases(public).values() if path}


def written(flower: bool = True) -> list[str]:
    """Write all lines, sorted: each member once, with the class that defines it."""
    names = public_names(flower)
    first: dict[int, str] = {}
    classes: dict[type, str] = {}
    found: list[str] = []
    for path, value in names.items():
        named = inspect.isroutine(value) or isinstance(value, type)
        if named and first.setdefault(id(value), path) != path:
            found.append(f"{path} = {first[id(value)]}")
        elif isinstance(value, type):
            classes[value] = path
        else:
            found.append(f"{path}{call(value) if named else ''}")
    paths = with_bases(classes)
    for kind, path in paths.items():
        found += lines_of(path, kind, paths)
    return sorted(found)


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit("The list is written on Python 3.11 or later, where Flower can be installed")
    LIST.write_text("".join(f"{line}\n" for line in written()), encoding="utf-8")
