"""Whom a training trusts, by mode."""

from __future__ import annotations

from collections.abc import Iterator

from turnout.federated.secure_sum import SecureSum

MODES = ("trusted_server", "always_send", "participants_only")

_DRAWS = "each client draws by itself whether it takes part and with what"

#: Who must keep what to themselves, by mode.
_TRUST = {
    "trusted_server": (
        "the server keeps to itself what clients send and who takes part, and adds the noise "
        "(anybody else may see every model)",
        f"{_DRAWS}, and nobody learns it",
    ),
    "always_send": (
        "every client that is available sends in every round, at a time that does not tell whether "
        "it takes part (the server may see all that is sent)",
        f"{_DRAWS}, and nobody learns it, and it adds its own noise",
    ),
    "participants_only": (
        f"{_DRAWS}, and adds its own noise (the server may see who takes part, and all that is "
        "sent)",
    ),
}

#: The same where the server sees sums.
_TRUST_OF_SUMS = {
    "always_send": (
        "every client that is available sends in every round, at a time that does not tell whether "
        "it takes part (the server may see who sends, and the sum)",
        f"{_DRAWS}, and nobody learns it, and it adds its share of the noise",
    ),
    "participants_only": (
        f"{_DRAWS}, and adds its share of the noise (the server may see who takes part, and the "
        "sum)",
    ),
}


def trusted(mode: str, secure_sum: SecureSum | None, alone: float) -> Iterator[str]:
    """Return the assumptions of a guarantee about people, a sentence each."""
    if secure_sum is None:
        yield from _TRUST[mode]
    else:
        yield from _TRUST_OF_SUMS[mode]
        yield from secure_sum._trust(alone)
