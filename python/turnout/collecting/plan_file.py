r"""The plan file, ``plan.json``, which a server publishes and devices follow.

.. code-block:: text

   {
     "format": "turnout-plan-file",
     "version": 1,
     "plan": {"format":"turnout-plan",...},
     "fingerprint": "32e0...a7d2",
     "signature": {"algorithm":"ed25519","public_key":"d75a...511a","value":"e556...100b"}
   }

An ASCII JSON object with these members in any order and no others; ``signature`` may be missing.

* ``plan`` is the canonical text of the plan, :meth:`turnout.Plan.to_json`: keys sorted, no
  spaces, ASCII only, numbers as Python writes them. It may have a ``serial``, an integer below
  2^53, ``expires``, a whole number of seconds since the start of 1970 in UTC, and ``groups``, a
  list with an object for each public column of the messages: its ``column`` and its ``values``.
* ``fingerprint`` is the SHA-256, in lower-case hexadecimal, **of the bytes of** ``plan`` **as
  they stand in the file**, from its first brace to its last. A reader in any language hashes
  these bytes and never has to write a number the way Python does. A file that a program has
  reformatted is therefore refused.
* ``signature`` is an Ed25519 signature (RFC 8032) of the 21 bytes ``turnout-plan-file v1\0``
  followed by the 32 bytes of the fingerprint; keys and signature are in lower-case hexadecimal.

A reader refuses unknown or duplicate members, a fingerprint that does not match the text, an
invalid signature, and a text that is not the canonical text of its plan. If it was given a public
key, it also refuses a file that this key has not signed. A signature identifies the maker of the
plan only to somebody who knows the public key from elsewhere. A device makes no report after
``expires``. It refuses a plan without a serial, or with a smaller one than it has used.
"""

from __future__ import annotations

import inspect
from typing import Any

from turnout import _arguments, _core, _kinds
from turnout._documents import object_schema, parsed
from turnout.domain import Domain
from turnout.signing import SigningKey, public_key_bytes

#: What a parameter's annotation means in JSON; a parameter of another type may be anything.
_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def plan_file_text(plan: _core.Plan, signing_key: SigningKey | None) -> str:
    """Return the text of a plan file.

    Raises
    ------
    InvalidValueError
        If a label is not Unicode text (it holds half of a surrogate pair).
    InvalidTypeError
        If ``signing_key`` is not a signing key.
    """
    if signing_key is None:
        return plan.file()
    _arguments.instance("signing_key", signing_key, SigningKey, "a SigningKey")
    public_key = public_key_bytes("signing_key", signing_key.public_key)
    return plan.file(public_key, signing_key.sign(plan.to_sign()))


def plan_file_schema() -> dict[str, Any]:
    """Return the schema of :meth:`turnout.Plan.schema`."""
    schema: dict[str, Any] = parsed(_core.PLAN_FILE_SCHEMA)
    schema["$defs"] |= {
        "oracle": {"oneOf": [_oracle(name, found) for name, found in _kinds.known().items()]},
        **{kind.__name__.lower(): kind.schema() for kind in _domain_types()},
    }
    return schema


def _domain_types() -> set[Any]:
    return {found.domain_type for found in _kinds.known().values()}


def _oracle(name: str, found: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of an oracle, from the parameters of its constructor."""
    parameters = {
        each.name: _value(each.annotation)
        for each in inspect.signature(found).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    return object_schema(
        {
            "name": {"const": name},
            "epsilon": {"type": "number", "exclusiveMinimum": 0},
            "domain": {"$ref": f"#/$defs/{found.domain_type.__name__.lower()}"},
            **parameters,
        },
        optional=tuple(parameters),
    )


def _value(annotation: Any) -> dict[str, Any]:
    words = [word.strip() for word in str(annotation).split("|")]
    kinds = [_TYPES.get(word, "null" if word == "None" else "") for word in words]
    return {"type": kinds} if all(kinds) else {}


def differences(our_plan: Any, their_plan: Any) -> list[str]:
    """Describe how another plan differs from the expected one."""
    ours, theirs = our_plan.oracle, their_plan.oracle
    found = []
    if ours.name != theirs.name:
        found.append(f"oracle {theirs.name} instead of {ours.name}")
    if ours.epsilon != theirs.epsilon:
        found.append(f"epsilon {theirs.epsilon} instead of {ours.epsilon}")
    if ours.domain != theirs.domain:
        found.append(f"domain {_domains(theirs.domain, ours.domain)}")
    if ours.name == theirs.name:
        asked, given = ours.parameters(), theirs.parameters()
        found += [
            f"{name} {_arguments.shown(given.get(name))} instead of "
            f"{_arguments.shown(asked.get(name))}"
            for name in asked | given
            if given.get(name) != asked.get(name)
        ]
    if our_plan.participation != their_plan.participation:
        found.append(
            f"participation {their_plan.participation!r} instead of {our_plan.participation!r}"
        )
    return found


def _domains(theirs: Any, ours: Any) -> str:
    """Describe how two domains differ, by their first different labels."""
    if repr(theirs) != repr(ours):
        return f"{theirs!r} instead of {ours!r}"
    if not (isinstance(theirs, Domain) and isinstance(ours, Domain)):
        return "with other labels"
    shown = _arguments.shown
    pairs = zip(theirs.labels, ours.labels, strict=True)
    for code, (their, our) in enumerate(pairs):
        if their != our or shown(their) != shown(our):
            return f"label {code} is {shown(their)} instead of {shown(our)}"
    return "labels have other types"
