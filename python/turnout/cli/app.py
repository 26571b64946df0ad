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
    "Compute the epsilon and delta of a release.\n\n[bold]participation[/] "
    "covers federated learning with random participation, and "
    "[bold]calibrate[/] finds the noise it needs. [bold]shuffle[/] covers "
    "shuffled reports, [bold]counts[/] published counts of sampled people, "
    "and [bold]batches[/] training on batches. Printed numbers are rounded "
    "to the safe side.",
    [
        *_later(
            "account.training",
            participation="Account for federated learning with random participation.",
            calibrate="Find the noise or rate that meets an epsilon and a delta.",
        ),
        *_later(
            "account.crowd",
            shuffle="Account for shuffled reports of direct encoding.",
            counts="Account for counts of sampled people, published without noise.",
        ),
        *_later(
            "account.training",
            batches="Account for training on batches, for each way of drawing them.",
        ),
    ],
)

KEY = _group(
    "key",
    "Make keys that sign plans, so that devices can recognise your plans.\n\n"
    "[bold]new[/] makes a secret key. [bold]public[/] prints its public key, "
    "which devices need.",
    _later(
        "key",
        new="Make a new secret key in a file that only you can read.",
        public="Print the public key that belongs to a secret key.",
    ),
)

ROUNDS = _group(
    "rounds",
    "Ask in rounds: find frequent values of a huge domain, or estimate rare "
    "answers.\n\n[bold]hitters[/] or [bold]rare[/] starts. [bold]split[/] "
    "assigns each person to one round. [bold]close[/] reads the tally of a "
    "round and writes the plan of the next round. [bold]plan[/] writes the "
    "open round's plan again. [bold]show[/] prints the results.",
    _later(
        "rounds",
        hitters="Find the most frequent values of a huge domain.",
        rare="Estimate rare answers in two rounds.",
        split="Split people into groups, so that each person is asked in one round.",
        close="Close the open round with its tally, and write the plan of the next.",
        plan="Write the plan of the open round again.",
        show="Show the values found, with intervals, and a summary of each round.",
    ),
)

STORE = _group(
    "store",
    "Check and complete the stores of turnout serve.\n\n[bold]check[/] "
    "recounts a store. [bold]asked[/] records how many people were asked. "
    "[bold]turnout estimate[/], [bold]report[/] and [bold]tally[/] read a "
    "store as a tally.",
    _later(
        "store",
        check="Recount the messages of a store and compare them with its tallies.",
        asked="Record how many people were asked.",
    ),
)

TASK = _group(
    "task",
    "Run rounds that one cheater cannot spoil, on two servers that verify "
    "every answer and see none (DAP).\n\n[bold]new[/] makes the files of all "
    "roles. [bold]turnout serve --task[/] runs a server. [bold]upload[/] "
    "sends an answer. [bold]result[/] prints the result.",
    _later(
        "task",
        new="Make a task: the files of its leader, helper, clients and collector, with their keys.",
        upload="Send an answer to a task, as shares with a proof that it is one valid answer.",
        result="Get the result of a batch, with intervals.",
    ),
)

#: What ``turnout --help`` lists, in its order.
COMMANDS = [
    *_later(
        "{}",
        survey="Randomize a table's answers and show the share of each answer, with intervals.",
        plan="Plan a collection: choose the oracle and how many people must report.",
        randomize="Randomize answers into reports that are safe to share.",
        tally="Count reports or messages into one small tally.",
        estimate="Estimate shares or means from a tally, with intervals.",
        report="Write a report about a collection, as a page for people.",
    ),
    *_later(
        "{}",
        serve="Run a server that collects messages, keeps tallies and shows results.",
        invite="Make one-time links, so that each person answers only once.",
    ),
    *_later(
        "{}.command",
        aggregate="Count answers under secret sharing, so that no server sees any answer.",
        sample="Draw one private, realistic record for each person.",
    ),
    *_later(
        "sample.collected",
        sample_reference="Collect a reference for private records, under local privacy.",
    ),
    *_later(
        "sample.report",
        sample_report="Compare drawn records with the real ones, if you hold these.",
    ),
    Later(
        "reproduce",
        "turnout_reproduce.command",
        "Reproduce figures and tables of the papers, each with a verdict.",
        extra="reproduce",
    ),
    *_later(
        "{}",
        demo="Collect two answers of 6,366 real people and compare with the truth.",
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
        "Private statistics when only some people take part.\n\n[bold]demo[/] "
        "shows everything on a real survey. [bold]survey[/] goes from a table to "
        "shares with intervals in one call. Its three steps are commands too: "
        "[bold]randomize[/] protects each answer, [bold]tally[/] counts the "
        "reports, [bold]estimate[/] computes shares or means, and "
        "[bold]report[/] writes a page about them. [bold]plan[/] finds how many "
        "reports you need and writes the plan file that devices follow; "
        "[bold]key[/] makes the keys that sign it. [bold]serve[/] collects what "
        "devices and browsers send, and [bold]store[/] checks what it keeps. "
        "[bold]rounds[/] finds frequent values of a huge domain, and rare "
        "answers. [bold]aggregate[/] counts answers under secret sharing, and "
        "[bold]task[/] does so on two servers, with proofs. [bold]sample[/] "
        "draws one realistic record for each person, around what "
        "[bold]sample-reference[/] may collect before, and [bold]sample-report[/] "
        "compares the records with the real ones. [bold]account[/] computes "
        "the privacy of random participation, shuffling and sampling. "
        "[bold]reproduce[/] reproduces figures of the papers."
    ),
    epilog="Exit codes: 0 success, 1 refused (standard error says why), 2 wrong usage.",
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
