"""The HTML sheet of every page: style, content policy, heading and footer."""

from __future__ import annotations

from importlib.resources import files

from turnout.reporting.markup import Markup, join, paragraph, tag, void


def sheet(title: str, lead: str, cards: list[tuple[str, str]], *sections: Markup) -> str:
    """Write a self-contained page.

    Parameters
    ----------
    title
        The heading.
    lead
        What stands below it.
    cards
        Numbers that are shown large, and what they are.
    sections
        What follows.
    """
    style = files("turnout.reporting").joinpath("style.css").read_text("utf-8")
    # What a browser may load: nothing but what is inside.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = join(
        [
            void("meta", charset="utf-8"),
            void("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            void("meta", http_equiv="Content-Security-Policy", content=policy),
            # Otherwise browsers ask the server for a picture, which the policy forbids.
            void("link", rel="icon", href="data:,"),
            tag("title", title),
            tag("style", Markup(style)),
        ],
        "\n",
    )
    items = (tag("li", tag("strong", value), tag("span", words)) for value, words in cards)
    header = tag(
        "header",
        tag("h1", title),
        paragraph(lead, class_="lead"),
        tag("ul", *items, class_="figures") if cards else "",
    )
    foot = tag("footer", "Made by turnout: private statistics when only some people take part.")
    body = tag("body", header, tag("main", *sections), foot)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n{body}\n</html>\n'
