"""What our texts tell a reader to call or type is there: names, parameters, options, commands.

Read are all strings of the package (errors, hints, notes, guarantees, help), the code in its
docstrings, and the code in the pages of the documentation. Examples are left out: they run.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from tests.loading import load

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/turnout"

#: Calls that are none of ours: mathematics, other languages and packages, what a reader writes.
FOREIGN = {
    **dict.fromkeys(
        ("Bin", "C", "KL", "M", "N", "P", "Pbar", "Phi", "Q", "Q0", "Qbar", "Var"), "mathematics"
    ),
    **dict.fromkeys(
        (
            "ceil",
            "clip",
            "diag",
            "exp",
            "f_",
            "floor",
            "high",
            "ln",
            "log",
            "low",
        ),
        "mathematics",
    ),
    **dict.fromkeys(("D", "G", "W", "b"), "mathematics"),
    "evaluate": "a function that the caller gives",
    "limits": "a method of what is described",
    "browserStorage": "a function of turnout.js",
    "outbox.earlier": "a method of turnout.js",
    **dict.fromkeys(("Q_x", "delta_backward", "f", "r", "r_a", "sin", "sqrt", "w"), "mathematics"),
    **dict.fromkeys(
        (
            "answers",
            "count",
            "get_bit",
            "read_parquet",
            "substr",
            "ANY",
            "CAST",
            "coalesce",
            "length",
            "pg_advisory_xact_lock",
            "pg_try_advisory_lock",
            "to_regclass",
            "unnest",
        ),
        "SQL",
    ),
    **dict.fromkeys(
        ("available", "callback", "gradients", "gradients_of", "trial"), "the reader's own"
    ),
    "remember": "the reader's own",
    **dict.fromkeys(("draw", "log_density"), "methods that an object of the reader's own has"),
    **dict.fromkeys(("Array.numpy", "ClientApp", "strategy.start"), "Flower's"),
    **dict.fromkeys(("accountant.state_dict", "make_private"), "Opacus's"),
    "state_dict": "Opacus's and PyTorch's",
    **dict.fromkeys(("jax.grad", "jax.vmap"), "JAX's"),
    **dict.fromkeys(("KernelDensity", "StandardScaler", "make_pipeline"), "scikit-learn's"),
    **dict.fromkeys(("map_batches", "ray.data.read_parquet", "ray.shutdown"), "Ray's"),
    "_asdict": "of named tuples",
}


class Text(NamedTuple):
    """A text, and where it stands."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Give the place."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def module_of(name: str) -> ModuleType:
    """Load a module beside this one."""
    return load(Path(__file__).with_name(f"{name}.py"))


# The texts.


def without_examples(text: str) -> str:
    """Leave out what runs: examples, and what they print up to the next empty line."""
    return re.sub(r"^ *>>>.*\n(?:(?! *$).*\n?)*", "\n", text, flags=re.M)


def docstrings_of(tree: ast.AST) -> set[int]:
    """Strings that stand as statements."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def reprs_of(tree: ast.AST) -> set[int]:
    """Everything in a ``__repr__``: those look like calls, and say more than can be passed."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {
        id(inner)
        for function in functions
        if function.name == "__repr__"
        for inner in ast.walk(function)
    }


def strings(path: Path) -> Iterator[tuple[Text, bool]]:
    """All strings of a module, those with holes too, and whether each is a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation, hidden = docstrings_of(tree), reprs_of(tree)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for node in ast.walk(tree):
        if id(node) in hidden or id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            pieces = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield Text(path, node.lineno, "".join(map(str, pieces))), False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(path, node.lineno, node.value), id(node) in documentation


@cache
def texts() -> list[tuple[Text, list[str]]]:
    """All texts, each with its parts that are code: of a docstring and a page what is marked so."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for text, documentation in strings(path):
            if documentation:
                own = text._replace(text=without_examples(text.text))
                found.append((own, re.findall(r"``(.+?)``", own.text, re.S)))
            else:
                found.append((text, [text.text]))
    # The pages of single names are written from the docstrings, where the documentation was made.
    pages = [page for page in (ROOT / "docs").rglob("*.rst") if page.parent.name != "api"]
    for path in [*sorted(pages), ROOT / "README.md"]:
        page = without_examples(path.read_text(encoding="utf-8"))
        # What to write instead of a name that is no more: the first column is of such names.
        page = re.sub(r"^   \* - (?:.|\n)*?(?=^     - )", "", page, flags=re.M)
        mark = "`" if path.suffix == ".md" else "``"
        code = re.findall(f"{mark}(.+?){mark}", page, re.S)
        found.append((Text(path, 1, page), code))
    return found


# What there is.


@cache
def public() -> dict[str, list[Any]]:
    """What a name without its path may be: public functions, classes, and members of classes."""
    api = module_of("public_api")
    names = api.public_names(importlib.util.find_spec("flwr") is not None)
    found: dict[str, list[Any]] = {}
    for path, value in names.items():
        found.setdefault(path.rpartition(".")[2], []).append(value)
    classes = {value: "" for value in names.values() if isinstance(value, type)}
    for kind in api.with_bases(classes):
        for name in api.members(kind):
            found.setdefault(name, []).append(getattr(kind, name, None))
    return found


def resolved(path: str) -> Any:
    """Follow a dotted path from the package.

    Raises
    ------
    AttributeError
        If there is nothing.
    """
    first, *names = path.split(".")
    value: Any = importlib.import_module("turnout" if first == "tn" else first)
    for name in names:
        if isinstance(value, ModuleType) and not hasattr(value, name):
            try:
                value = importlib.import_module(f"{value.__name__}.{name}")
            except ModuleNotFoundError as error:
                raise AttributeError(path) from error
        elif isinstance(value, type) and name in inspect.get_annotations(value):
            return None  # a field
        else:
            value = getattr(value, name)
    return value


def takes(function: Any, call: ast.Call) -> bool:
    """Whether a function may be called so: by the number of arguments, and their names."""
    if not callable(function):
        return False
    if any(isinstance(each, ast.Constant) and each.value is ... for each in call.args):
        return True
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled, and says nothing
        return True
    given = {each.arg: None for each in call.keywords if each.arg is not None}
    for first in ([], [None]):  # a method that is looked up at its class takes the object too
        try:
            signature.bind(*first, *call.args, **given)
        except TypeError:
            continue
        return True
    # Names alone, of what takes more than a text names.
    return not call.args and set(given) <= set(signature.parameters) and bool(given)


def calls(code: str) -> Iterator[tuple[str, ast.Call | None]]:
    """Calls in a piece of text: the dotted name, and the call if it reads as Python."""
    for match in re.finditer(r"(?<![\w\\])([A-Za-z_][\w.]*)\((?!s\))", code):
        name, depth, end = match[1], 0, match.end() - 1
        for end in range(match.end() - 1, len(code)):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            if depth == 0:
                break
        inner = " ".join(code[match.start() : end + 1].split()).replace("…", "x")
        inner = re.sub(r", seed=\)", ", seed=0)", inner)
        try:
            expression = ast.parse(inner, mode="eval").body
        except SyntaxError:
            expression = None
        yield name, expression if isinstance(expression, ast.Call) else None


def is_there(name: str, call: ast.Call | None) -> bool:
    """Whether something public has the name, and takes the arguments."""
    if name.split(".", maxsplit=1)[0] in ("tn", "turnout", "turnout_reproduce"):
        try:
            candidates = [resolved(name)]
        except AttributeError:
            return False
    else:
        candidates = public().get(name.rpartition(".")[2], [])
    # Empty parentheses say that it is called, not with what.
    if call is None or not (call.args or call.keywords):
        return bool(candidates)
    return any(takes(one, call) for one in candidates)


def test_every_call_that_a_text_names_is_there_and_takes_its_arguments() -> None:
    wrong, used = [], set()
    for text, parts in texts():
        for part in parts:
            for name, call in calls(part):
                if name in FOREIGN:
                    used.add(name)
                elif not hasattr(builtins, name) and not is_there(name, call):
                    wrong.append(f"{text}: {name}: {' '.join(part.split())[:160]}")
    assert not wrong, "\n".join(wrong)
    assert used == set(FOREIGN), f"in no text any more: {set(FOREIGN) - used}"


#: Dotted texts that begin as our names do.
NO_NAMES = {
    "turnout.kinds": "the group of entry points that another package declares its kinds in",
    "turnout.checksum": "a key in the metadata of report files",
    "turnout.js": "the client for browsers, a file that the server gives",
    **dict.fromkeys(
        [
            f"turnout.{key}"
            for key in (
                *("aggregator", "collection", "draw", "reports", "round", "shares", "sum"),
                *("training", "update"),
            )
        ],
        "a key in the messages of Flower",
    ),
}


def test_every_name_with_its_path_is_there() -> None:
    wrong, used = [], set()
    for text, _ in texts():
        for path in re.findall(r"(?<![\w./-])((?:tn|turnout)(?:\.[A-Za-z_]\w*)+)", text.text):
            if path in NO_NAMES:
                used.add(path)
                continue
            try:
                resolved(path)
            except AttributeError:
                wrong.append(f"{text}: {path}")
    assert not wrong, "\n".join(wrong)
    assert used == set(NO_NAMES), f"in no text any more: {set(NO_NAMES) - used}"


# The command line.

#: Options of other programs that texts name.
FOREIGN_OPTIONS = {
    **dict.fromkeys(("--package", "--release"), "cargo's"),
    **dict.fromkeys(
        (
            *("--insecure", "--node-config", "--trusted-entities", "--superlink", "--stream"),
            *("--enable-supernode-auth", "--auth-supernode-private-key", "--root-certificates"),
            *("--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certfile"),
            "--disable-runtime-dependency-installation",
        ),
        "Flower's",
    ),
}


@cache
def commands() -> dict[str, tuple[str, set[str]]]:
    """Every command by its words, with its module and its options."""
    lines = (PACKAGE / "cli/usage.txt").read_text(encoding="utf-8").splitlines()
    found = {}
    for path, flags, options, *_ in (line.split("\t") for line in lines):
        module, _, name = path.rpartition(".")
        group = re.match(r"turnout\.cli\.(account|key|rounds|store|task)\b", module)
        words = f"{group[1]} {name}" if group else name
        found[words] = module, {*flags.split(), *options.split(), "--help", "-h"}
    return found


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]\b")


def named_commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command that a text names, and what follows in the same sentence or command line."""
    words = "|".join(sorted(commands(), key=len, reverse=True)).replace(" ", r"\s+")
    rest = r"((?:\\\n|(?!\bturnout\b)[^\n;|`])*)"
    for match in re.finditer(rf"\bturnout\s+({words})\b{rest}", text):
        yield " ".join(match[1].split()), match[2]


def every_option() -> set[str]:
    """The options of all commands."""
    return {"--version"}.union(*(options for _, options in commands().values()))


def options_at(path: Path) -> set[str]:
    """The options that a text may name: those of the commands of its module, else all."""
    if path.suffix != ".py":
        programs = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "examples").rglob("*.rs")]
        programs += (ROOT / "docs/pictures").glob("*.py")
        read = (OPTION.findall(each.read_text("utf-8")) for each in programs)
        return every_option().union(*read)
    names = ["turnout", *path.relative_to(PACKAGE).with_suffix("").parts]
    # The module itself, or all of a command's folder.
    for own in (".".join(names), ".".join(names[:3]) + "."):
        found = [options for module, options in commands().values() if f"{module}.".startswith(own)]
        if found:
            return set().union(*found)
    return every_option()


def test_every_option_that_a_text_names_is_there() -> None:
    """Of the command that is named before it; else of those of the module, or of any."""
    wrong, used = [], set()
    for text, _ in texts():
        left, there = text.text, options_at(text.path) | {"--version"}
        for command, rest in named_commands(text.text):
            given = OPTION.findall(rest)
            known = commands()[command][1]
            wrong += [f"{text}: turnout {command} {each}" for each in given if each not in known]
            left = left.replace(rest, "", 1) if given else left
        for option in OPTION.findall(left):
            if option in FOREIGN_OPTIONS:
                used.add(option)
            elif option not in there:
                wrong.append(f"{text}: {option}")
    assert not wrong, "\n".join(wrong)
    assert used == set(FOREIGN_OPTIONS), f"in no text any more: {set(FOREIGN_OPTIONS) - used}"


def test_every_command_that_a_text_shows_is_there() -> None:
    """In code, and on lines that begin with the program."""
    known = {*commands(), *(words.split()[0] for words in commands()), "--version", "--help", "-h"}
    wrong, seen = [], set()
    for text, parts in texts():
        shown = [part for part in parts if text.text != part]
        # Indented as code is, which prose is not.
        indent = " {8,}" if text.path.suffix == ".py" else " {3,}"
        shown += re.findall(rf"^{indent}(?:\$ )?(turnout [a-z-].*)$", text.text, re.M)
        for code in shown:
            for match in re.finditer(r"^turnout\s+([a-z-]+)(?:\s+([a-z]+))?", code):
                first, second = match[1], match[2]
                group = any(words.startswith(f"{first} ") for words in commands())
                words = f"{first} {second}" if group and second else first
                seen.add(words)
                if words not in known:
                    wrong.append(f"{text}: {match[0]}")
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 15


# The finders find what is wrong.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mechanism.start_round() starts a round", "mechanism.start_round"),
        ("pass it to tn.Domain(labels, sorted=True)", "tn.Domain"),
        ("estimate(nothing='hajek')", "estimate"),
        ("turnout.distributed.Round.begin(mechanism)", "turnout.distributed.Round.begin"),
    ],
)
def test_calls_that_are_not_there_are_found(text: str, name: str) -> None:
    (found,) = calls(text)
    assert found[0] == name
    assert not is_there(*found)


def test_calls_that_are_there_are_taken() -> None:
    text = "Round.start(mechanism), oracle.tally(reports) or tn.survey(data, 'vote', epsilon=1.0)"
    assert [name for name, call in calls(text) if is_there(name, call)] == [
        "Round.start",
        "oracle.tally",
        "tn.survey",
    ]
    assert not list(calls("2 person(s) are missing"))


def test_options_are_looked_up_at_the_command_that_is_named() -> None:
    assert dict(
        named_commands("run turnout rounds\n close --sign; or turnout tally --nodes 5")
    ) == {
        "rounds close": " --sign",
        "tally": " --nodes 5",
    }
    assert "--sign" in options_at(PACKAGE / "cli/rounds.py")
    assert "--trust" not in options_at(PACKAGE / "cli/aggregate/mechanisms.py")
    assert "--trust" in options_at(PACKAGE / "cli/options.py")
    with pytest.raises(AttributeError):
        resolved("turnout.survey_all")
