"""HTML fragments in which every value is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is already HTML; all other text is escaped when it is inserted."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escape a value, unless it is markup.

    Control characters, which HTML does not allow, are shown as symbols.

    Examples
    --------
    >>> text("<script>"), text(Markup("<b>"))
    ('&lt;script&gt;', '<b>')
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape("".join(_printable(letter) for letter in str(value))))


def _printable(letter: str) -> str:
    code = ord(letter)
    if code < 32 and letter not in "\t\n":
        return chr(0x2400 + code)
    # Halves of pairs of UTF-16 cannot be written at all.
    return "\ufffd" if 0xD800 <= code < 0xE000 or 0x7F <= code < 0xA0 else letter


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """Put content between the tags of an element.

    A trailing underscore of an attribute's name is left out, and others become hyphens; attributes
    that are None are left out.

    Examples
    --------
    >>> tag("td", "a < b", class_="number", data_row=None)
    '<td class="number">a &lt; b</td>'
    """
    return Markup(f"{void(name, **attributes)}{join(content)}</{name}>")


def void(name: str, **attributes: object) -> Markup:
    """Make an element without content.

    Examples
    --------
    >>> void("img", alt='"quoted"')
    '<img alt="&quot;quoted&quot;">'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>")


def join(pieces: Iterable[object], between: str = "") -> Markup:
    """Concatenate fragments."""
    return Markup(between.join(text(piece) for piece in pieces))


def paragraph(*content: object, class_: str | None = None) -> Markup:
    """Make a paragraph."""
    return tag("p", *content, class_=class_)


def section(title: str, *content: object, name: str) -> Markup:
    """Make a section with its heading."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def definitions(rows: Iterable[tuple[object, object]]) -> Markup:
    """Make a list of names and values."""
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in rows)
    return tag("dl", *pairs)


def table(
    caption: object, header: Sequence[object], rows: Iterable[Sequence[object]], *, names: int = 1
) -> Markup:
    """Make a table whose first columns name the row and whose others are numbers.

    Parameters
    ----------
    caption
        What the table shows.
    header
        The names of the columns.
    rows
        The cells.
    names
        How many of the first columns name the row.
    """
    head = tag(
        "tr",
        *(
            tag("th", cell, scope="col", class_=None if place < names else "number")
            for place, cell in enumerate(header)
        ),
    )
    body = (
        tag(
            "tr",
            *(
                tag("th", cell, scope="row") if place < names else tag("td", cell, class_="number")
                for place, cell in enumerate(row)
            ),
        )
        for row in rows
    )
    inner = tag("caption", caption), tag("thead", head), tag("tbody", *body)
    # A wide table scrolls by itself, with the keyboard too.
    whole = tag("table", *inner)
    return tag("div", whole, class_="table", role="region", aria_label=caption, tabindex="0")
