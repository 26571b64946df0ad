"""``turnout store``: what a server keeps."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from turnout import Plan
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.tables import print_json, tell
from turnout.errors import InvalidValueError
from turnout.serve.checking import check as count_again
from turnout.serve.counted import group_text, stored_families
from turnout.serve.storage.opening import open_store

StoreAddress = Annotated[
    str, typer.Argument(metavar="STORE", help="A file, or postgresql://user@host/name.")
]


@command
def check(store: StoreAddress, *, as_json: options.AsJson = False) -> None:
    """Recount the messages of a store and compare them with its tallies.

    If the store keeps messages, the command reads and counts each one. If it keeps only tallies,
    the number of reports must equal the number of remembered messages. A server may write to the
    store meanwhile. A difference is an error with exit code 1.

    --json prints keep, questions, groups, reports, asked and refused.

    [bold]Example:[/]

        turnout store check reports.db
    """
    with closing(open_store(store)) as opened:
        checked = count_again(opened)
    if as_json:
        print_json(asdict(checked))
        return
    messages = checked.keep == "messages"
    rows = [
        ("keeps", "messages and tallies" if messages else "tallies"),
        ("questions", f"{checked.questions:,}"),
        ("groups", f"{checked.groups:,}"),
        ("reports", f"{checked.reports:,}"),
        ("asked", f"{checked.asked:,}"),
        ("refused", f"{checked.refused:,}"),
        ("tallies", "match the messages" if messages else "match the remembered messages"),
    ]
    tell(f"Store {opened.place}", rows)


@command
def asked(
    store: StoreAddress,
    people: Annotated[
        int,
        typer.Argument(min=0, max=2**63 - 1, help="The number of people asked in total so far."),
    ],
    *,
    group: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
    plan_file: Annotated[Path | None, typer.Option("--plan", metavar="FILE")] = None,
) -> None:
    """Record how many people were asked.

    Results then show how many people have not answered and, if not everyone takes part, how many
    people a share stands for. The number is a total: a later number replaces it. With invitations,
    turnout serve uses their number until you record another.

    [bold]Examples:[/]

        turnout store asked reports.db 5000

        turnout store asked reports.db 1200 --group region=north

    Parameters
    ----------
    group
        For a plan with groups: the group, with a value for each column; repeatable.
    plan_file
        The plan, if the store has several.
    """
    wanted = None if plan_file is None else Plan.read(plan_file)
    with closing(open_store(store)) as opened:
        with opened.reading() as reading:
            known = [
                (plan, number)
                for family in stored_families(reading)
                for plan, number in zip(family.plans, family.numbers, strict=True)
                if wanted is None or plan.fingerprint == wanted.fingerprint
            ]
        if len(known) != 1:
            found = (
                f"contains {len(known)} plans: pass --plan FILE to select one"
                if known
                else "no such plan"
            )
            raise InvalidValueError(f"{opened.place}: {found}")
        ((plan, number),) = known
        key = group_text(plan._group_key("group", _group(plan, group or [])))
        with opened.reading() as reading:
            received = sum(row.received for row in reading.tallies(number) if row.group == key)
        if people < received:
            here = "of this group" if plan.groups else "of this plan"
            raise InvalidValueError(
                f"PEOPLE must be at least {received}, the number of reports {here} in "
                f"{opened.place}, got {people}: pass the total number of people asked"
            )
        opened.ask(number, key, people)
    tell(f"Store {opened.place}", [("asked", f"{people:,}")])


def _group(plan: Plan, words: list[str]) -> dict[str, object] | None:
    """Read the values of a group, as the plan lists them."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if len(given) < len(words):
        raise InvalidValueError("group must be COLUMN=VALUE, once for each column")
    if not plan.groups.keys() <= given.keys():
        options = " ".join(f"--group {name}=VALUE" for name in plan.groups)
        raise InvalidValueError(f"the plan has groups, each asked for itself: pass {options}")
    if not given:
        return None
    return {
        name: next((each for each in plan.groups.get(name, ()) if str(each) == text), text)
        for name, text in given.items()
    }
