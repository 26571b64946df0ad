"""A JSON Schema of plan files, made of the oracles that this process knows."""

from __future__ import annotations

import inspect
from typing import Any, Final

from turnout import _kinds

#: What every reader of JSON takes for an integer, and the end of the year 9999.
MOST_SERIAL: Final = 2**53 - 1
MOST_EXPIRES: Final = 253_402_300_799

_HEXADECIMAL = "^[0-9a-f]{%d}$"

#: What a parameter's annotation means in JSON; a parameter of another type may be anything.
_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def plan_file_schema() -> dict[str, Any]:
    """Return the schema of :meth:`turnout.Plan.schema`."""
    oracles = [_oracle(name, found) for name, found in _kinds.known().items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plan file of turnout",
        **_object(
            {
                "format": {"const": "turnout-plan-file"},
                "version": {"const": 1},
                "plan": {"$ref": "#/$defs/plan"},
                "fingerprint": {"type": "string", "pattern": _HEXADECIMAL % 64},
                "signature": {"$ref": "#/$defs/signature"},
            },
            optional=("signature",),
        ),
        "$defs": {
            "plan": _object(
                {
                    "format": {"const": "turnout-plan"},
                    "version": {"const": 1},
                    "oracle": {"$ref": "#/$defs/oracle"},
                    "participation": {"$ref": "#/$defs/participation"},
                    "serial": {"type": "integer", "minimum": 0, "maximum": MOST_SERIAL},
                    "expires": {"type": "integer", "minimum": 0, "maximum": MOST_EXPIRES},
                },
                optional=("serial", "expires"),
            ),
            "oracle": {"oneOf": oracles},
            **{kind.__name__.lower(): kind.schema() for kind in _domains()},
            "label": {
                "oneOf": [
                    {"type": ["string", "number", "boolean", "null"]},
                    _object({"tuple": {"type": "array", "items": {"$ref": "#/$defs/label"}}}),
                ]
            },
            "participation": {
                "oneOf": [
                    _object({"kind": {"const": "everyone"}}),
                    _object(
                        {
                            "kind": {"const": "bernoulli"},
                            "rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        }
                    ),
                    _object({"kind": {"const": "personalized"}}),
                ]
            },
            "signature": _object(
                {
                    "algorithm": {"const": "ed25519"},
                    "public_key": {"type": "string", "pattern": _HEXADECIMAL % 64},
                    "value": {"type": "string", "pattern": _HEXADECIMAL % 128},
                }
            ),
        },
    }


def _domains() -> set[Any]:
    return {found.domain_type for found in _kinds.known().values()}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _oracle(name: str, found: type[Any]) -> dict[str, Any]:
    """Describe an oracle by what its constructor takes by name: a plan writes no other words."""
    parameters = {
        each.name: _value(each.annotation)
        for each in inspect.signature(found).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    return _object(
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
