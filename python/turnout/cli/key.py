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
    """Make a new secret key, in a file that only its owner can read.

    An existing file is never replaced. Whoever has the file can sign plans in your name; turnout
    plan --sign does. The public key, which is printed, is what devices are told.

    [bold]Example:[/]

        turnout key new plans.key
    """
    made = SigningKey.generate()
    made.write(path)
    tell(f"Key in {path}", [("public key", made.public_key)])


@command
def public(path: KeyFile) -> None:
    """Print the public key of a secret one, 64 hexadecimal digits.

    [bold]Example:[/]

        turnout key public plans.key
    """
    output().print(SigningKey.read(path).public_key, soft_wrap=True)
