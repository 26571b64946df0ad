"""``turnout key``: keys that sign plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnout.cli.commands import command
from turnout.cli.running import output
from turnout.cli.tables import tell
from turnout.signing import SigningKey

KeyFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file of the secret key.")]


@command
def new(path: KeyFile) -> None:
    """Make a new secret key in a file that only you can read.

    An existing file is never replaced. Anyone who has the file can sign plans in your name with
    turnout plan --sign. The command prints the public key, which you give to devices.

    [bold]Example:[/]

        turnout key new plans.key
    """
    made = SigningKey.generate()
    made.write(path)
    tell(f"Key in {path}", [("public key", made.public_key)])


@command
def public(path: KeyFile) -> None:
    """Print the public key that belongs to a secret key.

    [bold]Example:[/]

        turnout key public plans.key
    """
    output().print(SigningKey.read(path).public_key, soft_wrap=True)
