"""``turnout invite``: links by which each person answers once."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from turnout._extras import require
from turnout._files import atomic_write
from turnout._progress import track
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.tables import tell
from turnout.errors import InvalidValueError
from turnout.serve.collection import Published
from turnout.serve.invitations import Invitations


@command
def invite(
    plan: Annotated[Path, typer.Argument(metavar="PLAN")],
    *,
    number: Annotated[int, typer.Option(min=1, max=10_000_000)],
    url: Annotated[str, typer.Option(metavar="URL")],
    target: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")],
    blind: Annotated[bool, typer.Option("--blind")] = False,
    qr: Annotated[Path | None, typer.Option("--qr", metavar="FOLDER")] = None,
) -> None:
    """Make one-time links, so that each person answers only once.

    The command writes two files: the links, which you send and then delete, and a file of the same
    name ending in .json, for turnout serve --invitations. The server cannot make a link from its
    file.

    Without --blind, the server could note which invitation arrives with which report. With --blind,
    the browser exchanges the invitation for a ticket that the server signs without seeing it (RFC
    9474), and sends the report with the ticket. Neither reveals the invitation. Somebody who
    watches the addresses and times of requests may still link them, unless a relay hides them.

    [bold]Example:[/]

        turnout invite plan.json --number 5000 --url https://survey.example.org/ -o invitations.csv

    Parameters
    ----------
    plan
        The plan file that people answer. If it is signed, the links contain its public key, and the
        page accepts no other plan.
    number
        The number of people to invite.
    url
        The address of the page.
    target
        The file for the links, with columns number and link.
    blind
        Make invitations that the server cannot link to reports.
    qr
        Also write a QR code of each link: pictures 1.svg, 2.svg, ... in this new folder.
    """
    parts = urlsplit(url)
    server_file = target.with_suffix(".json")
    options.refuse_if(
        (
            parts.scheme not in ("http", "https") or not parts.netloc or bool(parts.fragment),
            "--url",
            "must be the address of the page: https://, a host, and no #",
        ),
        (target.suffix.lower() != ".csv", "--output", "must end in .csv"),
    )
    for path in (target, server_file, *([] if qr is None else [qr])):
        if path.exists():
            raise InvalidValueError(
                f"{path} already exists, and people may have these invitations; choose another name"
            )
    pictures = None if qr is None else require("segno", "serve")
    key = Published.read(plan).public_key
    pinned = f"&key={key}" if key else ""
    invitations, tokens = Invitations.create(number, blind=blind)
    links = [f"{url}#invitation={token}{pinned}" for token in tokens]
    invitations.write(server_file)
    try:
        _write(target, links)
    except BaseException:
        server_file.unlink()
        raise
    if qr is not None:
        assert pictures is not None
        qr.mkdir(mode=0o700)
        width = len(str(number))
        for place, link in enumerate(track(links, "QR codes", wanted=True), 1):
            picture = qr / f"{place:0{width}}.svg"
            pictures.make(link, error="m").save(os.fspath(picture), scale=4, unit="px")
    tell(
        "Invitations",
        [
            ("people", f"{number:,}"),
            (
                "can be linked to reports",
                "by addresses only" if blind else "by who runs the server",
            ),
            ("public key of the plan", key or "the plan is not signed"),
        ],
        f"The file for the server: {server_file}",
        links=target,
        pictures=qr,
    )


def _write(path: Path, links: Sequence[str]) -> None:
    """Write the links, for the eyes of their owner only."""
    with (
        atomic_write(path, replace=False, private=True) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.writer(file)
        rows.writerow(["number", "link"])
        rows.writerows(enumerate(links, 1))
