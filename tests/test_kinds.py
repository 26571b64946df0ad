"""The table of kinds says where the classes are."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import turnout as tn
from turnout import _kinds, distribution, frequency, mean
from turnout.collecting.kind import Kind


def named(base: type[Kind]) -> Iterator[type[Kind]]:
    """All classes of turnout below a class that have a name in plans of their own."""
    for kind in base.__subclasses__():
        if "name" in vars(kind) and kind.__module__.startswith("turnout."):
            yield kind
        yield from named(kind)


def test_the_table_holds_every_kind_by_its_name_and_module() -> None:
    for package in (distribution, frequency, mean):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    there = {kind.name: kind.__module__ for kind in named(Kind)}
    assert there == _kinds._MODULES


def test_every_name_finds_its_class() -> None:
    for name in _kinds._MODULES:
        kind = _kinds.found(name)
        assert kind is not None
        assert kind.name == name
        assert issubclass(kind, Kind)
    assert _kinds.found("telepathy") is None


def test_a_kind_of_ones_own_is_found_when_it_is_defined() -> None:
    class Own(tn.DirectEncoding):
        name = "own_of_the_kinds_test"

    try:
        oracle = Own(1.0, 3)
        assert _kinds.known()[Own.name] is Own
        assert _kinds.from_dict(oracle.to_dict()) == oracle
    finally:
        _kinds.REGISTERED.pop(Own.name)
    assert _kinds.found(Own.name) is None
