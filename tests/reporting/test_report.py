"""The page of a collection: well made, self-contained, escaped, and with the right numbers."""

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.frequency.longitudinal import Memoized
from turnout.reporting import report, write_pictures
from turnout.reporting.contents import Contents
from turnout.reporting.figures import drawn
from turnout.reporting.markup import Markup, tag, text
from turnout.reporting.telling import View
from turnout.reporting.words import epsilon_together, guarantee, rounded_up

pytest.importorskip("matplotlib")

HALF = tn.Bernoulli(0.5)
COUNTRY = 'country"><script> $x{$'
DAY = "the <day> $\\frac$"
VOID = {"meta", "img", "link"}
HOSTILE = [
    "<script>alert(1)</script>",
    "a & b",
    'say "$x$ {$"',
    "line\nbreak\x00\x85",
    "é 日 \ud800",
]


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attributes}) == len(attributes)
        self.elements.append((name, dict(attributes)))
        if name in ("td", "th"):
            self.cells.append((name, ""))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            name, before = self.cells[-1]
            self.cells[-1] = (name, before + data)

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for element, attributes in self.elements if element == name]


def oracle(labels: Any = ("no", "yes", "maybe")) -> tn.OptimizedUnaryEncoding:
    return tn.OptimizedUnaryEncoding(1.0, tn.Domain(labels))


def grouped(labels: Any = ("no", "yes", "maybe")) -> tn.GroupedTally:
    made = oracle(labels)
    size = made.domain.size
    tallies = {}
    for country in ("DE", "<b>FR"):
        for day in range(4):
            date = datetime.date(2026, 3, 1) + datetime.timedelta(day)
            tallies[country, date] = made.simulate(
                [100 * (day + 1)] * size, participation=HALF, seed=day
            )
    tallies["NL", datetime.date(2026, 3, 2)] = made.simulate([0] * size, participation=HALF)
    return tn.GroupedTally([COUNTRY, DAY], tallies)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Page]:
    def make(tally: Any, **arguments: Any) -> Page:
        path = tmp_path / "report.html"
        report(tally, path, **arguments)
        return Page(path.read_text(encoding="utf-8"))

    return make


def test_the_page_is_self_contained_and_accessible(made: Callable[..., Page]) -> None:
    page = made(grouped(), title="Do you?")
    assert page.source.startswith('<!DOCTYPE html>\n<html lang="en">')
    # A browser asks for no other icon.
    assert page.named("link") == [{"rel": "icon", "href": "data:,"}]
    for name in ("script", "iframe", "object", "embed", "a", "form", "base"):
        assert page.named(name) == []
    images = page.named("img")
    assert len(images) == 4
    assert all(str(image["src"]).startswith("data:image/svg+xml;base64,") for image in images)
    assert all(image["alt"] for image in images)
    policy = next(meta for meta in page.named("meta") if meta.get("http-equiv"))
    assert str(policy["content"]).startswith("default-src 'none';")
    outside = page.source.replace("".join(str(image["src"]) for image in images), "")
    assert "url(" not in outside
    assert "@import" not in outside
    assert "http:" not in outside
    assert "https:" not in outside
    handlers = {key for _, attributes in page.elements for key in attributes if key[:2] == "on"}
    assert handlers == set()
    assert all(cell["scope"] in ("col", "row") for cell in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table")) == 4
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {each["aria-labelledby"] for each in page.named("section")} <= set(ids)
    assert page.words.count("Do you?") == 2
    assert "prefers-color-scheme: dark" in page.source
    assert "size: A4" in page.source


def test_values_are_escaped(made: Callable[..., Page]) -> None:
    tallies = grouped(HOSTILE)
    page = made(tallies, title="<script>title</script>")
    assert page.named("script") == []
    assert page.named("b") == []
    cells = [content for _, content in page.cells]
    assert "<script>alert(1)</script>" in cells
    assert "line\nbreak␀\ufffd" in cells
    assert "é 日 \ufffd" in cells
    assert "<b>FR" in cells
    assert DAY in cells
    assert COUNTRY in cells
    assert f"By {COUNTRY}" in page.words
    assert all("<" in str(image["alt"]) for image in page.named("img")[1:])
    assert "<script>title</script>" in page.words


def test_the_numbers_are_those_of_the_estimate(made: Callable[..., Page]) -> None:
    tally = oracle().simulate([600_000, 300_000, 100_000], participation=HALF, seed=3)
    page = made(tally, level=0.9, simultaneous="bonferroni")
    cells = [content for _, content in page.cells]
    records = tally.estimate().to_records(0.9, simultaneous="bonferroni")
    records.sort(key=lambda record: -record["frequency"])
    assert cells[:5] == ["answer", "people", "share", "standard error", "90 % interval"]
    rows = [cells[5 * row : 5 * row + 5] for row in (1, 2, 3)]
    for row, record in zip(rows, records, strict=True):
        shares = [float(cell.removesuffix(" %")) for cell in (*row[2:4], *row[4].split(" – "))]
        expected = [record[key] for key in ("frequency", "standard_error", "low", "high")]
        assert row[0] == record["label"]
        assert int(row[1].replace(",", "")) == round(record["count"])
        for shown, value in zip(shares, expected, strict=True):
            assert shown == pytest.approx(100 * value, abs=0.006)
    text = " ".join(page.words)
    assert f"{tally.received:,}" in text
    assert "all 3 answers at once (Bonferroni)" in text
    assert tally.plan.fingerprint in text
    assert "375 " not in text
    assert f"turnout {tn.__version__}" in text


def test_groups_stand_in_their_tables(made: Callable[..., Page]) -> None:
    tallies = grouped()
    page = made(tallies, simultaneous="sidak", over="groups")
    text = " ".join(page.words)
    assert "2026-03-01 to 2026-03-04" in text
    assert "all groups of an answer at once (Šidák)" in text
    assert "the group has no nodes" in text
    assert "groups without a report" in text
    cells = [content for _, content in page.cells]
    by_country = tallies.over(COUNTRY).estimate()
    record = by_country.to_records(simultaneous="sidak", over="groups")[0]
    assert "answer" in cells
    rows = [cells[place + 1 : place + 4] for place, cell in enumerate(cells) if cell == "<b>FR"]
    received = f"{by_country.tally['<b>FR'].received:,}"
    assert [str(record["label"]), received, f"{100 * record['frequency']:.1f} %"] in rows


def test_long_tables_are_cut_with_a_word(made: Callable[..., Page]) -> None:
    labels = [f"place {number}" for number in range(300)]
    big = tn.DirectEncoding(5.0, labels).simulate([10] * 300, seed=1)
    page = made(big)
    assert len(page.named("tr")) == 21
    words = " ".join(page.words)
    assert "The 20 answers with the largest shares, of 300, the most frequent first" in words
    assert "20 of 300 rows. All of them: turnout report --top all" in words
    assert "Of 300 answers, about 15 are then outside their intervals" in words
    page = made(big, top=2, order="label", simultaneous="sidak")
    records = big.estimate().to_records(top=2)
    names = [content for kind, content in page.cells if kind == "th" and content in labels]
    assert names == sorted(record["label"] for record in records)
    assert "outside of theirs" not in " ".join(page.words)
    assert len(made(big, top=None).named("tr")) == 301


def test_many_answers_of_groups_are_cut_in_each(made: Callable[..., Page]) -> None:
    one = tn.DirectEncoding(5.0, 30).simulate([10] * 30, seed=1)
    other = replace(one, origin=None)  # equal counts of other people
    tally = tn.GroupedTally(["country"], {"DE": one, "FR": other})
    page = made(tally, top=2)
    rows = [content for kind, content in page.cells if kind == "th" and content in ("DE", "FR")]
    assert rows == ["DE", "DE", "FR", "FR"]
    assert "4 of 60 rows." in " ".join(page.words)


def test_who_was_left_out(made: Callable[..., Page]) -> None:
    tally = replace(
        oracle().simulate([10, 20, 30], seed=1),
        left_out=tn.LeftOut(unanswered=7, ungrouped=1, duplicates=11, refused=2),
    )
    text = " ".join(made(tally).words)
    numbers = (
        "7 without an answer, 1 without a group, 11 further rows of a person, 2 refused messages"
    )
    assert f"left out, and not in any other number {numbers}" in text
    assert f"Left out, and not in any number below: {numbers}." in text
    assert "people who count (nodes) 60" in text
    assert "people asked" not in text
    nobody = " ".join(made(oracle().simulate([10, 20, 30], seed=1)).words)
    assert "left out, and not in any other number none" in nobody
    assert "Left out" not in nobody


def days(oracle: Any, number: int) -> tn.GroupedTally:
    tallies = {
        datetime.date(2026, 3, day): oracle.simulate([200, 300 + day], participation=HALF, seed=day)
        for day in range(1, number + 1)
    }
    return tn.GroupedTally(["day"], tallies)


def test_who_is_asked_on_many_days_is_not_many_people(made: Callable[..., Page]) -> None:
    direct = tn.DirectEncoding(1.25, 2)
    page = made(days(direct, 4))
    text = " ".join(page.words)
    assert "504 people at most at one of the 4 times" in text
    assert "2,010 questions to people, at all times together" in text
    assert "ε = 5 privacy of a person who reports at all times; ε = 1.25 for one report" in text
    assert "A person who reports every time is protected by ε = 5 in total" in text
    assert "2,010 people" not in text
    assert "people who count" not in text
    assert "people who did not report" not in text
    assert [words for _, words in page.cells][1] == "times held"


def test_one_day_has_as_many_people_as_were_asked(made: Callable[..., Page]) -> None:
    text = " ".join(made(days(tn.DirectEncoding(1.25, 2), 1)).words)
    assert "501 people (nodes)" in text
    assert "ε = 1.25 privacy of one report" in text
    assert "times" not in text.replace("times as likely", "").replace("times in 100", "")


def test_permanent_answers_cost_what_all_reports_say() -> None:
    memoized = Memoized(tn.DirectEncoding(4.0, 2), first_epsilon=1.0)
    plan = tn.Plan(memoized, tn.Everyone())
    for times in (1, 2, 99):
        assert epsilon_together(plan, times) == Fraction(memoized.spent_by_reports(times))
    # That the answer returns shows, too: no number of different answers bounds what they spend.
    assert epsilon_together(plan, 99) > 2 * Fraction(memoized.lifetime_epsilon)


@pytest.mark.parametrize("how", ["one day", "days", "sum of days"])
def test_permanent_answers_have_their_three_epsilons_by_name(
    made: Callable[..., Page], how: str
) -> None:
    memoized = Memoized(tn.DirectEncoding(2.0, 2), first_epsilon=1.5)
    grouped = days(memoized, 1 if how == "one day" else 20)
    text = " ".join(made(grouped.total if how == "sum of days" else grouped).words)
    # Each sentence with a ratio has the epsilon of that ratio.
    assert "4.482 times as likely as under another answer (ε = 1.5)" in text
    both = "ε = 1.5 for one report, ε = 2 for all reports of an answer that stays the same"
    assert text.count(both) == 3
    assert "ε = 1.5 privacy of one report" in text
    together = rounded_up(memoized.spent_by_reports(20), 4)
    whole = f"{both}, ε = {together} for 20 reports whose answers may change at any time"
    assert text.count(whole) == (0 if how == "one day" else 2)
    # No other epsilon is there.
    named = {"1.5", "2"} | (set() if how == "one day" else {together})
    assert set(re.findall(r"ε = ([0-9.]*[0-9])", text)) == named
    assert "sum of the ε of both" in text


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 20.0])
def test_the_guarantee_is_never_understated(epsilon: float) -> None:
    plan = tn.Plan(tn.DirectEncoding(epsilon, 3), tn.Bernoulli(0.25))
    first, bet, rate, again = guarantee(plan)
    ratio = plan.oracle.realized_ratio
    shown = Fraction(first.split("more than ")[1].split(" times")[0].replace(",", ""))
    assert ratio <= shown <= ratio * Fraction(1002, 1000)
    odds = Fraction(bet.split("at most ")[1].split(" to 1")[0].replace(",", ""))
    assert odds == shown
    wins = Fraction(bet.split("win it at most ")[1].split(" times")[0])
    assert 100 * ratio / (1 + ratio) <= wins <= 100 * ratio / (1 + ratio) + Fraction(2, 10)
    assert "no protection beyond" in rate
    assert "sum of the ε" in again
    everyone = guarantee(tn.Plan(plan.oracle, tn.Everyone()), ("country", "day"))
    assert "If people decide for themselves" in everyone[2]
    assert "(country, day) are not randomized" in everyone[3]


@pytest.mark.parametrize("value", [1e-9, 0.0123456, 1.0, 1.0001, 9.9999, 99.99, 123456.7, 4.85e8])
def test_bounds_are_rounded_up(value: float) -> None:
    shown = Fraction(rounded_up(value, 3).replace(",", ""))
    assert Fraction(repr(value)) <= shown <= value * 1.0101
    assert Fraction(value) <= Fraction(rounded_up(Fraction(value), 3).replace(",", ""))


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (math.log(5), "1.61"),
        (0.1, "0.1"),
        (1.1, "1.1"),
        (1.2341, "1.235"),
        (2, "2"),
        (12.3456, "12.35"),
    ],
)
def test_epsilon_is_rounded_up_to_four_digits(epsilon: float, shown: str) -> None:
    oracle = tn.DirectEncoding(epsilon, 3)
    assert f"(ε = {shown})" in guarantee(tn.Plan(oracle, tn.Everyone()))[0]
    assert float(shown) >= epsilon


def test_what_is_typed_is_written(made: Callable[..., Page]) -> None:
    tally = tn.DirectEncoding(math.log(5), 3).simulate([10, 20, 30], seed=1)
    text = " ".join(made(tally).words)
    assert "ε = 1.61" in text
    assert "ε = 1.609" not in text


def test_a_tally_without_reports(made: Callable[..., Page]) -> None:
    empty = oracle().collect([], participation=HALF)
    text = " ".join(made(empty).words)
    assert "There is no estimate" in text
    none = tn.GroupedTally(["day"], {}, plan=empty.plan)
    assert "There are no groups" in " ".join(made(none, time="day").words)
    biased = oracle().simulate([10, 20, 30], participation=HALF, seed=1)
    assert "There are no intervals" in " ".join(made(biased, method="c").words)


def test_labels_that_no_file_can_hold(made: Callable[..., Page]) -> None:
    days = tn.Domain([datetime.date(2026, 3, day) for day in (1, 2)])
    text = " ".join(made(tn.DirectEncoding(1.0, days).simulate([10, 20], seed=1)).words)
    assert "2026-03-02" in text
    assert "SHA-256" not in text
    assert "versions" in text


def test_figures_of_others_stay_open(tmp_path: Path) -> None:
    import matplotlib
    from matplotlib import pyplot

    pyplot.close("all")
    before = matplotlib.get_backend()
    figure = pyplot.figure()
    try:
        report(oracle().simulate([10, 20, 30], seed=1), tmp_path / "a.html")
        assert pyplot.get_fignums() == [figure.number]
        assert matplotlib.get_backend() == before
    finally:
        pyplot.close(figure)


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        report(grouped(), tmp_path / name, title="x")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_set_of_pictures(tmp_path: Path) -> None:
    written = write_pictures(grouped(HOSTILE), tmp_path / "set", time=DAY)
    names = ["estimate", "groups", "series", "series_by_group"]
    assert [path.name for path in written] == [
        f"{name}.{kind}" for name in names for kind in ("pdf", "svg", "png")
    ]
    starts = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}
    assert all(path.read_bytes().startswith(starts[path.suffix]) for path in written)
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == sorted(
        path.name for path in written
    )


def test_bad_arguments_leave_no_file(tmp_path: Path) -> None:
    tally = oracle().simulate([10, 20, 30], participation=HALF, seed=1)
    path = tmp_path / "report.html"
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"path": tmp_path / "report.pdf"}, InvalidValueError, r"must end in \.html"),
        ({"tally": 3}, InvalidTypeError, "tally must be"),
        ({"title": 3}, InvalidTypeError, "title"),
        ({"level": 95}, InvalidValueError, "level"),
        ({"method": "best"}, InvalidValueError, "method"),
        ({"simultaneous": "x"}, InvalidValueError, "simultaneous"),
        ({"over": "x"}, InvalidValueError, "over"),
        ({"time": "day"}, InvalidValueError, "not grouped"),
        ({"tally": grouped(), "time": "hour"}, InvalidValueError, "one of the columns"),
    ]
    for change, error, message in cases:
        with pytest.raises(error, match=message):
            report(**{"tally": tally, "path": path, **change})
    personal = oracle().collect(["no"], participation=tn.Personalized([0.999999999]), seed=1)
    with pytest.raises(EstimatorError):
        report(personal, path, method="g")
    assert list(tmp_path.iterdir()) == []


def test_markup_escapes_all_but_markup() -> None:
    assert tag("td", 'a"<', Markup("<b>"), title='"&') == (
        '<td title="&quot;&amp;">a&quot;&lt;<b></td>'
    )
    assert text(math.nan) == "nan"


def test_questions_at_several_times_are_not_called_people() -> None:
    days = [datetime.date(2026, 3, day) for day in (1, 2)]
    hours = tn.mean.Duchi(2.0, bounds=(0, 24))
    shares = tn.GroupedTally(["day"], {day: oracle().simulate([10, 20, 30]) for day in days})
    means = tn.GroupedTally(["day"], {day: hours.collect([2.0] * 60) for day in days})
    for tally, said in ((shares, "share of all questions"), (means, "all questions")):
        contents = Contents.of(tally, View("hajek"))
        with drawn(contents, contents.parts[0]) as figure:
            (axes,) = figure.axes
        assert axes.get_title("left").startswith("120 questions were answered")
        words = [axes.get_ylabel(), *(name.get_text() for name in axes.get_yticklabels())]
        assert said in words
        assert not any("people" in word for word in words)
