"""Pages of surveys and of what parties added up, and the sentence to publish."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.reporting import report, write_pictures
from turnout.reporting.words import decimals, percent, rounded

pytest.importorskip("matplotlib")

VOTES = ["never", "once", "often"]


def table(rows: int = 4000) -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "vote": random.choice(VOTES, rows, p=[0.6, 0.3, 0.1]),
            "region": random.choice(["N", "S"], rows),
            "age": random.integers(18, 80, rows),
        }
    )


def written(collection: Any, folder: Path, **options: Any) -> str:
    """The page's text, without its elements, a space for each."""
    report(collection, folder / "page.html", **options)
    source = (folder / "page.html").read_text(encoding="utf-8")
    text = re.sub(r"<style>.*?</style>", " ", source, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def published(text: str) -> str:
    return text.partition("To publish")[2].partition("What protects the people")[0].strip()


def test_the_page_of_a_survey_is_that_of_its_tally(tmp_path: Path) -> None:
    result = tn.survey(table(), "vote", epsilon=2.0, by="region", participation=0.5, seed=1)
    of_survey = written(result, tmp_path, title="How often?")
    of_tally = written(result.tally, tmp_path, title="How often?")
    notes = of_survey.partition("What else to know")[2].partition("Who took part")[0]
    assert "Made with a seed: use for tests only" in notes
    assert of_survey.replace(f"What else to know{notes}", "") == of_tally


def test_the_sentence_says_interval_level_reports_people_and_epsilon(tmp_path: Path) -> None:
    result = tn.survey(table(), "vote", epsilon=2.0, participation=0.5, seed=1)
    for level, simultaneous, words in (
        (0.9, None, "90 % interval "),
        (0.95, "sidak", "95 % interval for all at once "),
    ):
        options = {"level": level, "simultaneous": simultaneous}
        text = published(written(result, tmp_path, title="How often?", **options))
        assert text.startswith("“How often?” Estimated shares: “never” ")
        limits = result.estimate.interval(level, simultaneous=simultaneous)
        for code, vote in enumerate(result.tally.domain.labels):
            share = percent(result.estimate.frequencies[code], 1)
            low, high = percent(limits.low[code], 1), percent(limits.high[code], 1)
            said = words if vote == "never" else ""
            assert f"“{vote}” {share} ({said}{low} to {high})" in text
        assert f"4,000 people, of whom {result.tally.received:,} reported." in text
        assert "(local differential privacy, ε = 2 for each report)" in text


def test_the_sentence_says_who_is_left_out_and_of_many_answers_the_first(tmp_path: Path) -> None:
    values = [*(f"answer {number:02}" for number in range(12)), None] * 500
    data = pa.table({"vote": values})
    text = written(tn.survey(data, "vote", epsilon=3.0, missing="drop", seed=1), tmp_path)
    said = published(text)
    assert said.count("“answer") == 5
    assert ", and 7 more. The estimates are about 6,000 people, all of whom reported" in said
    assert "all of whom reported; 500 more gave no answer." in said


def test_days_are_questions_to_people_in_the_sentence(tmp_path: Path) -> None:
    oracle = tn.DirectEncoding(1.0, ["no", "yes"])
    days = {f"2026-03-0{day}": oracle.simulate([700, 300], seed=day) for day in (1, 2, 3)}
    said = published(written(tn.GroupedTally(["day"], days), tmp_path))
    assert "3,000 questions to people at 3 times, all of which were answered" in said
    assert "ε = 1 for each report, ε = 3 for a person who reports at all times" in said


def test_a_mean_and_a_distribution_have_a_sentence(tmp_path: Path) -> None:
    hours = np.random.default_rng(1).uniform(6, 10, 20_000)
    mean = tn.mean.Piecewise(2.0, (0, 24)).collect(hours, seed=1)
    estimate = mean.estimate()
    low, high = estimate.interval(0.95).low, estimate.interval(0.95).high
    digits = 3
    said = published(written(mean, tmp_path))
    numbers = re.match(r"Estimated mean: ([\d.]+) \(95 % interval ([\d.]+) to ([\d.]+)\)\.", said)
    assert numbers is not None
    for text, value in zip(numbers.groups(), (estimate.mean, low, high), strict=True):
        assert rounded(float(text), digits) == text or float(text) == pytest.approx(value, abs=0.01)
    spread = tn.SquareWave(2.0, (0, 24), bins=24).collect(hours, seed=1)
    said = published(written(spread, tmp_path))
    assert re.match(r"Estimated distribution: mean [\d.]+ \(95 % interval [\d.]+ to [\d.]+\)", said)
    assert ", median " in said


def test_mean_and_quantiles_of_a_survey_are_on_its_page(tmp_path: Path) -> None:
    result = tn.survey(table(), "age", epsilon=3.0, bounds=(0, 100), seed=1)
    text = written(result, tmp_path)
    assert "numbers from 0 to 100" in text
    digits = decimals([result.estimate.mean.standard_error])
    for record in result.to_records():
        value, low, high = (rounded(record[name], digits) for name in ("value", "low", "high"))
        assert f"{record['statistic']} {value}" in text
        assert f"{value} ({'95 % interval ' * (record['statistic'] == 'mean')}{low} to {high})" in (
            published(text)
        )
    grouped = tn.survey(table(), "age", epsilon=3.0, bounds=(0, 100), by="region", seed=1)
    text = written(grouped, tmp_path)
    assert "By region" in text
    assert "; S: mean " in published(text)
    for option in ({"clip": True}, {"simultaneous": "sidak"}, {"given": "age"}, {"time": "age"}):
        with pytest.raises(
            InvalidValueError, match=f"{next(iter(option))} (is of|applies to) .* numbers"
        ):
            report(result, tmp_path / "other.html", **option)  # type: ignore[arg-type]
    assert not (tmp_path / "other.html").exists()


def test_several_columns_share_a_page_with_their_epsilon(tmp_path: Path) -> None:
    columns = ["vote", "age", "region"]
    result = tn.survey(table(), columns, epsilon=2.0, bounds={"age": (0, 100)}, seed=1)
    text = written(result, tmp_path, simultaneous="sidak", clip=True)
    assert "A survey of vote, age, region" in text
    assert "ε = 2 privacy of all columns together" in text
    for name in columns:
        assert f"{name}: Estimates" in text
        assert f"{name}: reports received {result[name].tally.received:,}" in text
    assert "All columns together have ε = 2 for each person." in published(text)
    assert "reported one of them, drawn at random, at epsilon 2.0" in text
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    identifiers = re.findall(r' id="([^"]+)"', source)
    assert len(set(identifiers)) == len(identifiers)
    names = [path.name for path in write_pictures(result, tmp_path / "pictures")]
    assert names[::3] == ["1-estimate.pdf", "2-estimate.pdf", "3-estimate.pdf"]


def test_what_aggregators_counted_has_a_page_with_its_guarantee(tmp_path: Path) -> None:
    result = tn.survey(table(), "vote", epsilon=1.0, trust="aggregators", seed=1)
    text = written(result, tmp_path, title="How often?")
    assert "4,000 people, all of whom are counted" in text
    assert "3 parties added up secret shares" in text
    assert "no more than 2.719 times as likely as if a person gave another answer (ε = 1)" in text
    for sentence in result.mechanism.guarantee.assumptions:
        assert f"It rests on this: {sentence}." in text
    said = published(text)
    for record in result.to_records():
        assert f"“{record['label']}” {percent(record['frequency'], 3)}" in said
    assert "4,000 people, all of whom were counted. 3 parties added up secret shares, and" in said
    assert "differential privacy (ε = 1)" in said
    assert "reports paid for" not in text
    grouped = tn.survey(table(), "vote", epsilon=1.0, by="region", trust="aggregators", seed=1)
    text = written(grouped, tmp_path, simultaneous="bonferroni")
    assert "made from secret shares, in 2 rounds" in text
    assert "The columns of the groups (region) are not protected" in text
    assert re.search(r"Estimated shares: N: “never” .*; S: “never” ", published(text))
    for option in ({"method": "norm_sub"}, {"marginal": "vote"}, {"time": "region"}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(option))} (is of|applies to)"):
            report(result, tmp_path / "other.html", **option)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
def test_a_round_has_a_page_of_its_own(adjacency: str, tmp_path: Path) -> None:
    votes = ["no"] * 1200 + ["yes"] * 800
    mechanism = tn.distributed.SamplingAggregation(
        ["no", "yes"], 2000, rate=0.5, floor=500, adjacency=adjacency
    )
    result = mechanism.run(votes, seed=1)
    text = written(result, tmp_path)
    epsilon = mechanism.accounting.epsilon(1e-6, adjacency)
    shown = re.search(r"ε = ([\d.]+), δ = 1e-6", text)
    assert shown is not None
    # Never smaller than it is.
    assert epsilon <= float(shown.group(1)) <= 1.01 * epsilon
    change = "gave another answer" if adjacency == "replace" else "had not taken part"
    assert f"as if a person {change}" in text
    assert "but for a probability of δ = 1e-6." in text
    assert "every item is held by at least 500 users" in text
    assert "sent by each user (of 2,000)" in text
    # The server of a round among machines has the estimate alone.
    of_server = mechanism.estimate(result.sums)
    assert published(written(of_server, tmp_path)) == published(text)


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
def test_a_round_of_numbers_has_a_page_of_its_own(adjacency: str, tmp_path: Path) -> None:
    mechanism = tn.distributed.VerifiedSum(
        (-10, 60), 400, epsilon=0.5, participation=0.5, aggregators=3, adjacency=adjacency
    )
    result = mechanism.run([7] * 300 + [60] * 100, seed=1)
    text = written(result, tmp_path, level=0.9)
    estimate = result.estimate
    mean, total = estimate.interval(0.9), estimate.sum_interval(0.9)
    assert "The mean of a round A mean with differential privacy, made from secret shares." in text
    assert "400 people, all of whom are counted" in text
    assert "numbers from -10 to 60" in text
    assert "3 aggregators added up secret shares" in text
    change = "gave another number" if adjacency == "replace" else "had not taken part"
    assert f"times as likely as if a person {change} (ε = 0.5)" in text
    assert (
        f"is estimated as {estimate.mean:.1f}: between {mean.low:.1f} and {mean.high:.1f}, with "
        "90 % confidence."
    ) in text
    assert "The noise of the sum is in the mean" in text
    assert (
        f"The sum of all numbers is estimated as {estimate.sum:,.0f}: between {total.low:,.0f} "
        f"and {total.high:,.0f}."
    ) in text
    assert f"error of the mean, expected {mechanism._error()[0]:.3g} at most" in text
    assert "sent by each user (of 400) 3 messages" in text
    assert f"Estimated mean: {estimate.mean:.1f} (90 % interval " in published(text)
    # A collector of a task has the estimate alone.
    fewer = mechanism.estimate(result.sums, received=390)
    text = written(fewer, tmp_path)
    assert "390 people, all of whom are counted" in text
    assert "users whose shares did not arrive 10" in text
    for option, said in (("clip", "not of numbers"), ("consistent", "sums that parties")):
        with pytest.raises(InvalidValueError, match=said):
            report(result, tmp_path / "other.html", **{option: True})  # type: ignore[arg-type]


def test_users_whose_shares_did_not_come_are_told(tmp_path: Path) -> None:
    mechanism = tn.distributed.NoisyAggregation(
        ["no", "yes"], 2000, noise="discrete_laplace", epsilon=1.0, delta=0.0, max_missing_users=50
    )
    text = written(mechanism.estimate([1180, 800], received=1980), tmp_path)
    assert "1,980 people, all of whom are counted" in text
    assert "users whose shares did not arrive 20" in text
    assert "sent by each user" in text


def test_a_trusted_server_is_not_said_to_see_nothing(tmp_path: Path) -> None:
    mechanism = tn.distributed.SamplingAggregation(
        ["no", "yes"], 2000, rate=0.5, threshold=30, central=True
    )
    text = written(mechanism.run(["no"] * 1990 + ["yes"] * 10, seed=1), tmp_path)
    # Of a count below the threshold no error is known, and its interval is.
    assert re.search(r"yes 0 0\.\d+ % unknown 0\.\d+ % – \d", text)
    assert "nan" not in text
    assert "a trusted server counted the answers, which it saw" in text
    assert "secret shares" not in published(text)


def test_combinations_of_answers_are_columns_however_they_were_counted(tmp_path: Path) -> None:
    for trust in ("local", "aggregators"):
        result = tn.survey(
            table(), ["region", "vote"], epsilon=3.0, joint=True, trust=trust, seed=1
        )
        text = written(result, tmp_path)
        assert "region vote people share" in text
        assert "“N, never” " in published(text)
        assert "('" not in text


def test_what_is_no_collection_has_no_page(tmp_path: Path) -> None:
    for wrong in ({"vote": 3}, None, tn.DirectEncoding(1.0, 2)):
        with pytest.raises(
            InvalidTypeError, match="tally must be a tally, a GroupedTally, the res"
        ):
            report(wrong, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
