"""The typer application; its commands are known by name, and imported when one is chosen."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import signal
import sys
from collections.abc import Callable
from importlib.resources import files
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from turnout import __version__
from turnout._extras import require
from turnout._progress import beating
from turnout.errors import MissingExtraError


class Later(TyperCommand):
    """A command that stands for the function of its name until somebody chooses it.

    Parameters
    ----------
    name
        Its name, and that of the function.
    module
        The module of the function.
    summary
        The first paragraph of the function's docstring, which lists of commands show.
    extra
        The turnout extra that brings the module.
    """

    def __init__(self, name: str, module: str, summary: str, extra: str = "cli") -> None:
        super().__init__(name, help=summary)
        self.module = module
        self.extra = extra

    def function(self) -> Callable[..., None]:
        """Import the function.

        Raises
        ------
        MissingExtraError
            If the distribution that has its module is not installed.
        """
        word = (self.name or "").replace("-", "_")
        found: Callable[..., None] = getattr(require(self.module, self.extra), word)
        return found

    def command(self) -> Any:
        """Make the command itself, with the options and the help of the function."""
        alone = typer.Typer(
            add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False
        )
        function = self.function()
        text, documented = _documented(function)
        alone.command(self.name, help=text)(function)
        command = get_command(alone)
        # What several commands have says what it is where they all have it from: in the docstring
        # of an object of options, or in its type.
        for each in vars(function).get("objects", ()):
            for kind in each.__mro__:
                documented = {**_documented(kind)[1], **documented}
        for name, hint in get_type_hints(function, include_extras=True).items():
            for said in getattr(hint, "__metadata__", ()):
                documented.setdefault(name, said.help)
        for parameter in command.params:
            # Some releases of Click forget the help of arguments, so it is given here.
            if parameter.name in documented:
                parameter.help = documented[parameter.name]
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Any = None,
        **extra: Any,
    ) -> Any:
        """Begin to run the command itself: its options, its help, and what it does."""
        if not extra.get("resilient_parsing"):
            self._refuse_unknown_options(info_name, args, parent)
        try:
            command = self.command()
        except MissingExtraError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from error
        return command.make_context(info_name, args, parent, **extra)

    def _refuse_unknown_options(self, info_name: str | None, args: list[str], parent: Any) -> None:
        """Refuse a long option that the command has not, before it is imported.

        The command refuses it in the same words, and all else that is wrong.
        """
        flags, options, _ = (words.split() for words in self._usage())
        known = {*flags, *options, "--help"}
        rest = iter(args)
        for word in rest:
            name = word.partition("=")[0]
            if word == "--":
                return
            if word.startswith("--") and name not in known:
                # The class is that of the Click which this Typer uses, of its own or another's.
                module = importlib.import_module(typer.BadParameter.__module__)
                near = sorted(difflib.get_close_matches(name, known))
                with self.context_class(self, info_name=info_name, parent=parent) as context:
                    raise module.NoSuchOption(name, possibilities=near, ctx=context)
            if word in options:
                next(rest, None)

    def _usage(self) -> list[str]:
        """Look up the command's flags, its options with a value, and its arguments."""
        lines = files("turnout.cli").joinpath("usage.txt").read_text("utf-8").splitlines()
        known = {name: usage for name, *usage in (line.split("\t") for line in lines)}
        return known[f"{self.module}.{self.name}"]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Say what is given, without the command."""
        return ["[OPTIONS]", *self._usage()[2].split()]


def _documented(of: Any) -> tuple[str, dict[str, str]]:
    """Make help of a docstring: of a command and its parameters, or an object and its attributes.

    A paragraph is one line, an indented one keeps its lines.
    """
    section = r"\n\n(?:Parameters|Attributes)\n-{10}\n"
    parts = re.split(section, inspect.cleandoc(of.__doc__ or ""), maxsplit=1)
    said, listed = (*parts, "")[:2]
    text = "\n\n".join(
        inspect.cleandoc(part) if part.startswith(" ") else " ".join(part.split())
        for part in said.split("\n\n")
    )
    found = re.findall(r"^(\w+)\n((?: +.+\n?)+)", listed, re.MULTILINE)
    return text, {name: " ".join(words.split()) for name, words in found}


def _later(module: str, **summaries: str) -> list[TyperCommand | TyperGroup]:
    """Stand for the functions of these names, each of a module that may be named after it."""
    return [
        Later(name.replace("_", "-"), f"turnout.cli.{module.format(name)}", summary)
        for name, summary in summaries.items()
    ]


def _group(
    name: str, text: str, commands: list[TyperCommand | TyperGroup]
) -> TyperCommand | TyperGroup:
    return TyperGroup(
        name=name,
        help=text,
        commands=commands,
        no_args_is_help=True,
        rich_markup_mode="rich",
    )


ACCOUNT = _group(
    "account",
    "Compute what a release protects: epsilon and delta.\n\n"
    "[bold]participation[/] accounts for rounds of federated learning with clients that take "
    "part at random, [bold]calibrate[/] finds the noise that they need, [bold]shuffle[/] "
    "accounts for shuffled reports, [bold]counts[/] for counts of sampled people, "
    "[bold]batches[/] for the ways in which trainings draw them. Printed numbers are rounded to "
    "the safe side.",
    [
        *_later(
            "account.training",
            participation="Account for federated learning with random participation.",
            calibrate="Find what random participation needs to meet an epsilon and a delta.",
        ),
        *_later(
            "account.crowd",
            shuffle="Account for shuffled reports of direct encoding.",
            counts="Account for counts of sampled people, published without noise.",
        ),
        *_later(
            "account.training",
            batches="Account for training on batches, in every way in which batches are drawn.",
        ),
    ],
)

KEY = _group(
    "key",
    "Keys that sign plans, so that devices can tell a plan of yours from any other.\n\n"
    "[bold]new[/] makes one, [bold]public[/] prints the half of it that devices get.",
    _later(
        "key",
        new="Make a new secret key, in a file that only its owner can read.",
        public="Print the public key of a secret one, 64 hexadecimal digits.",
    ),
)

ROUNDS = _group(
    "rounds",
    "Questions that take rounds: frequent values of which there are far too many to count, and "
    "rare answers.\n\n"
    "[bold]hitters[/] and [bold]rare[/] begin, [bold]split[/] asks each person in one round, "
    "[bold]close[/] takes the tally of a round and writes the plan of the next, [bold]plan[/] "
    "writes the plan of the open one again, [bold]show[/] says what was found.",
    _later(
        "rounds",
        hitters="Begin to look for frequent words or numbers of which there are far too many to "
        "count.",
        rare="Begin a collection in two rounds, of which the second asks more of who holds a "
        "rare answer.",
        split="Split people into the groups of the rounds: each person is asked in one round.",
        close="Close the open round with its tally, and write the plan of the next.",
        plan="Write the plan of the open round again.",
        show="Show what was found, with intervals, and what happened in each round.",
    ),
)

STORE = _group(
    "store",
    "Stores of [bold]turnout serve[/].\n\n"
    "[bold]check[/] counts one again, [bold]asked[/] writes down how many people were asked. "
    "[bold]turnout estimate[/], [bold]report[/] and [bold]tally[/] read a store as a tally.",
    _later(
        "store",
        check="Count the messages of a store again, and compare with its tallies.",
        asked="Write down how many people were asked, which no message says.",
    ),
)

TASK = _group(
    "task",
    "Rounds that no cheater can spoil: two servers verify a proof with every answer, and neither "
    "sees one (DAP).\n\n"
    "[bold]new[/] makes the files of all roles, [bold]turnout serve --task[/] runs a server, "
    "[bold]upload[/] sends an answer, [bold]result[/] gets the result.",
    _later(
        "task",
        new="Make a task: the files of its leader, helper, clients and collector, keys included.",
        upload="Send an answer to a task: shares for both servers, with a proof that it is one "
        "answer.",
        result="Get the result of a batch: shares with intervals.",
    ),
)

#: What ``turnout --help`` lists, in its order.
COMMANDS = [
    *_later(
        "{}",
        survey="Randomize the answers of columns and show how often each is given, with intervals.",
        plan="Plan a collection: which oracle, and which share of the people must report.",
        randomize="Turn answers into reports that are safe to hand over.",
        tally="Count the reports of many files into one small tally.",
        estimate="Estimate how often each answer is given, or the mean of numbers, with honest "
        "intervals.",
        report="Write a report of a collection that people can read.",
    ),
    *_later(
        "{}",
        serve="Run a collection: take in messages, keep their tallies, and show results.",
        invite="Make one-time links: one for each person, so that each person answers once.",
    ),
    *_later(
        "{}.command",
        aggregate="Count answers under secret sharing, so that no server sees one, and the "
        "counts are private.",
        sample="Draw one realistic record for each user that is safe to hand over.",
    ),
    Later(
        "reproduce",
        "turnout_reproduce.command",
        "Compute figures and tables of the papers again, each with a verdict.",
        extra="reproduce",
    ),
    *_later(
        "{}",
        demo="Ask 6,366 real people two private questions and compare with the truth.",
    ),
    STORE,
    TASK,
    ROUNDS,
    ACCOUNT,
    KEY,
]


class Application(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        settings["commands"] = COMMANDS
        super().__init__(**settings)


app = typer.Typer(
    name="turnout",
    cls=Application,
    help=(
        "Private statistics when only some people take part.\n\n"
        "[bold]survey[/] goes from a table to shares with intervals in one call. "
        "Three steps: [bold]randomize[/] turns people's answers into reports that protect each of "
        "them, [bold]tally[/] counts the reports of many files, [bold]estimate[/] computes how "
        "often each answer is given, with intervals, and [bold]report[/] writes a page about it. "
        "[bold]plan[/] says before how many reports that takes and writes the plan file that "
        "drives devices, which [bold]key[/] signs, and [bold]demo[/] shows it on a real survey. "
        "[bold]serve[/] takes in what devices and browsers send, and [bold]store[/] looks after "
        "what it keeps. "
        "[bold]rounds[/] asks some people first and others after them: frequent values that nobody "
        "can list, and rare answers. "
        "[bold]aggregate[/] counts answers under secret sharing instead, and [bold]task[/] among "
        "machines, with proofs. "
        "[bold]sample[/] draws one realistic record for each user. "
        "[bold]account[/] computes what random participation, shuffling and sampling protect. "
        "[bold]reproduce[/] computes figures of the papers again."
    ),
    epilog="Exit codes: 0 fine, 1 refused (one line on standard error says why), 2 wrong usage.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"turnout {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def run() -> None:
    """Run the application so that being terminated removes half-written files too."""
    signal.signal(signal.SIGTERM, _terminate)
    with beating(" ".join(["turnout", *sys.argv[1:2]])):
        app(prog_name="turnout")


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
