"""Numbers and depth of documents from elsewhere are bounded, whatever reads them."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import pytest

import turnout
from turnout._documents import MOST_DEPTH, MOST_DIGITS, parsed, rational


def test_what_json_writes_is_read_back() -> None:
    text = '{"a":[1,-2.5,1e308,5e-324,true,null,"x"],"b":18446744073709551615}'
    values = {"a": [1, -2.5, 1e308, 5e-324, True, None, "x"], "b": 2**64 - 1}
    for form in (text, text.encode(), bytearray(text.encode())):
        assert parsed(form) == values
    assert [type(value) for value in parsed("[1, 1.0]")] == [int, float]
    # As Windows writes it.
    assert parsed("\ufeff" + text) == parsed(b"\xef\xbb\xbf" + text.encode()) == values


@pytest.mark.parametrize(
    "number",
    [
        "9" * (MOST_DIGITS + 1),
        "-" + "9" * MOST_DIGITS,
        "0." + "1" * MOST_DIGITS,
        "1e400",
        "-1e999999999",
    ],
)
def test_numbers_out_of_bounds_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"more than 1000 digits|out of the range"):
        parsed(f'{{"number": {number}}}')


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=f"the word {word} is not a JSON number"):
        parsed(f'{{"number": {word}}}')


def test_a_member_twice_is_found_among_many() -> None:
    """In time that grows with their number, not with its square: that would take an hour."""
    members = ",".join(f'"{number}":1' for number in range(500_000))
    with pytest.raises(ValueError, match="an object has '499999' twice"):
        parsed(f'{{{members},"499999":2}}')


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":[', "]}]")])
def test_what_is_nested_too_deep_is_refused(opening: str, closing: str) -> None:
    each = opening.count("[") + opening.count("{")
    most = MOST_DEPTH // each
    assert parsed(opening * most + "1" + closing * most) is not None
    for depth in (most + 1, 1000, 100_000):
        with pytest.raises(ValueError, match=f"nested more than {MOST_DEPTH} deep"):
            parsed(opening * depth + "1" + closing * depth)


def test_numbers_at_the_bounds_are_read() -> None:
    most = "9" * MOST_DIGITS
    assert parsed(most) == int(most)
    assert rational(f"-{most}/{most}") == -1
    for fraction in (Fraction(5e-324), Fraction(1.7e308), Fraction(-2, 3), Fraction(7)):
        assert rational(str(fraction)) == fraction


@pytest.mark.parametrize(
    "text",
    ["", "/", "1/", "1/-2", "+1", "1.5", "1e5", "1 ", "\u0661", "1_000", "9" * (MOST_DIGITS + 1)],
)
def test_what_is_no_fraction_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a fraction of at most"):
        rational(text)


def test_no_module_reads_json_around_the_bounds() -> None:
    """``json.loads`` of what was written a moment ago is no document from elsewhere."""
    folder = Path(turnout.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("json"), attr="loads"),
                    args=[ast.Call(func=ast.Attribute(value=ast.Name("json"), attr="dumps")), *_],
                ):
                    pass
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name("json"), attr="loads" | "load" | "JSONDecoder" as name
                    )
                ):
                    found.append((path.name, name))
    assert sorted(found) == [("_documents.py", "JSONDecoder")]
