"""Draw the pictures of ``start.rst`` and of the guides: ``python docs/pictures/guides.py``."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from statsmodels.datasets import fair

import turnout as tn
from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD

mpl.use("Agg")

from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
RATINGS = ["very poor", "poor", "fair", "good", "very good"]


def write_figure(figure: Any, name: str) -> None:
    """Write a picture beside this file."""
    figure.savefig(FOLDER / f"{name}.png", dpi=110)
    plt.close(figure)


def save(axes: Any, name: str) -> None:
    """Write the picture that axes are in."""
    write_figure(axes.figure, name)


def ratings() -> Any:
    """Draw the first collection of ``start.rst``: its estimate beside the truth."""
    answers = [RATINGS[int(code) - 1] for code in fair.load_pandas().data["rate_marriage"]]
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(RATINGS))
    truth = [answers.count(label) / len(answers) for label in RATINGS]
    return oracle.tally(oracle.randomize(answers, seed=3)).estimate().plot(truth=truth)


def survey_planning() -> Any:
    """Draw the error of a survey with four answers against epsilon."""
    _, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    epsilons = np.geomspace(0.5, 3.0, 13)
    for people, colour in ((500, "#b8860b"), (2000, "#7a9e3b"), (6000, "#1f6f8b")):
        errors = [
            100 * tn.plan(epsilon=epsilon, domain_size=4, nodes=people, target="max_error").error
            for epsilon in epsilons
        ]
        axes.plot(epsilons, errors, color=colour, label=f"{people:,} people")
    axes.axhline(4.0, color="0.6", linewidth=1.0, linestyle=":")
    axes.set(
        xscale="log", yscale="log", xlabel="epsilon", ylabel="largest error of a share (points)"
    )
    axes.set_xticks([0.5, 1, 1.61, 2, 3], ["0.5", "1", "1.61", "2", "3"])
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return axes


def survey_sites() -> Any:
    """Draw the subgroups of ``guides/survey.rst``: the same people, cards and forms."""
    domain = tn.Domain(["never", "sometimes", "often", "prefer not to say"])
    oracle = tn.DirectEncoding(epsilon=math.log(5), domain=domain)
    shares = {
        "north": [0.59, 0.25, 0.08, 0.08],
        "south": [0.49, 0.25, 0.18, 0.08],
        "west": [0.57, 0.25, 0.10, 0.08],
    }
    generator = np.random.default_rng(7)
    sites = np.repeat(list(shares), [3000, 1800, 600])
    true = np.concatenate(
        [generator.choice(4, (sites == site).sum(), p=each) for site, each in shares.items()]
    )
    cards = generator.integers(0, 8, true.size)
    written = np.where(cards < 4, cards, true)
    tallies, truth = {}, []
    for site in shares:
        forms = np.bincount(written[sites == site], minlength=4)
        tallies[site] = oracle.tally_from_counts(forms, nodes=int(forms.sum()))
        truth.append(100 * (true[sites == site] == 2).mean())
    found = tn.GroupedTally(["site"], tallies).estimate()
    bounds = found.interval(0.95, simultaneous="sidak", over="groups")
    middle = 100 * found.frequencies[:, 2]
    low, high = 100 * bounds.low[:, 2], 100 * bounds.high[:, 2]
    _, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    places = np.arange(3)
    axes.bar(places, truth, width=0.6, color="#c9ced8", label="truth (made-up data)")
    axes.errorbar(
        places,
        middle,
        yerr=[middle - low, high - middle],
        fmt="o",
        color="#1f6f8b",
        capsize=4,
        label="estimate, 95 % intervals for three sites",
    )
    axes.set_xticks(
        places,
        [f"{site}\n{tally.received:,} forms" for site, tally in tallies.items()],
    )
    axes.set_ylim(0, 26)
    axes.set_ylabel('"often" (% of those who answered)')
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    return axes


def telemetry_days() -> Any:
    """Draw fourteen days of the devices of ``guides/telemetry.rst``; a release on the tenth."""
    domain = tn.Domain(["none", "one", "more"])
    oracle, tallies = tn.DirectEncoding(epsilon=1.0, domain=domain), {}
    for day in range(1, 15):
        true = [0.86, 0.10, 0.04] if day < 10 else [0.6, 0.2, 0.2]
        counts = np.random.default_rng(day).multinomial(6000, true)
        tallies[datetime.date(2026, 3, day)] = oracle.simulate(
            counts, participation=tn.Bernoulli(0.4), seed=day
        )
    found = tn.GroupedTally(["day"], tallies).estimate()
    return found.series().plot(simultaneous="sidak")


def small_group() -> Any:
    """Draw the patients of ``guides/small_group.rst``: local reports beside secret shares."""
    labels = ["none", "sleep", "skin", "stomach", "mood", "other", "prefer not to say"]
    domain, generator = tn.Domain(labels), np.random.default_rng(4)
    shares = [0.36, 0.2, 0.14, 0.12, 0.08, 0.04, 0.06]
    answers = generator.choice(labels, 400, p=shares).tolist()
    truth = [100 * answers.count(label) / 400 for label in labels]
    oracle = tn.plan(epsilon=1.0, domain_size=domain, nodes=400).oracle
    mechanism = tn.distributed.NoisyAggregation(
        domain, 400, epsilon=1.0, parties=3, max_missing_users=40, max_colluding_users=40
    )
    estimates = {
        "local reports (subset selection)": oracle.collect(answers, seed=1).estimate(),
        "noise under secret shares": mechanism.run(answers, seed=1).estimate,
    }
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.9), layout="constrained", sharey=True)
    places = np.arange(domain.size)
    for axes, (title, estimate) in zip(panels, estimates.items(), strict=True):
        interval = estimate.interval(0.95, simultaneous="sidak")
        middle = 100 * estimate.frequencies
        axes.bar(places, truth, width=0.65, color="#c9ced8", label="truth (made-up data)")
        axes.errorbar(
            places,
            middle,
            yerr=[middle - 100 * interval.low, 100 * interval.high - middle],
            fmt="o",
            color="#1f6f8b",
            capsize=4,
            label="estimate, 95 % intervals",
        )
        axes.axhline(0.0, color="0.4", linewidth=0.8)
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xticks(places, [label.replace(" not ", "\nnot ") for label in labels])
        axes.tick_params(axis="x", labelrotation=35, labelsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of the 400 patients (%)")
    panels[1].legend(frameon=False, loc="upper right")
    return figure


def buyers() -> tuple[Any, Any, Any]:
    """Make the people of ``guides/federated_training.rst``: gradients of clients, public data."""
    generator = np.random.default_rng(0)
    truth = np.array([1.5, -1.0, 0.5])

    def people(number: int) -> tuple[Any, Any]:
        places = np.concatenate(
            [generator.normal(size=(number, 20, 2)), np.ones((number, 20, 1))], axis=2
        )
        return places, generator.random((number, 20)) < 1 / (1 + np.exp(-places @ truth))

    places, bought = people(2000)
    public, known = people(500)

    def gradients(model: Any, client: Any, elements: Any) -> Any:
        chance = 1 / (1 + np.exp(-places[client, elements] @ model))
        return (chance - bought[client, elements])[:, None] * places[client, elements]

    return gradients, public, known


def federated_history() -> Any:
    """Draw the history of the training of ``guides/federated_training.rst``."""
    gradients, public, known = buyers()
    plan = RandomParticipationSGD(
        0.1, 0.5, clip=1.0, epsilon=1.0, delta=1e-6, rounds=40, local_size=20, seed=1
    )
    engine = InProcessEngine(
        plan, np.zeros(3), gradients, sizes=20, optimizer=SGD(2.0), clients=2000, batched=True
    )

    def measured(model: Any) -> dict[str, float]:
        score = public @ model
        loss = np.logaddexp(0.0, score) - known * score
        return {"loss": float(loss.mean()), "accuracy": float(((score > 0) == known).mean())}

    engine.run(40, evaluate=measured)
    return engine.server.history.plot()


def federated() -> Any:
    """Draw the accuracy of ``guides/federated_training.rst`` against epsilon, for each mode."""
    clients, bound, rounds, seeds = 2000, 20, 40, range(5)
    gradients, public, known = buyers()

    def accuracy(**changed: Any) -> float:
        plan = RandomParticipationSGD(0.1, 0.5, local_size=bound, **changed)
        engine = InProcessEngine(
            plan, np.zeros(3), gradients, bound, SGD(2.0), clients=clients, batched=True
        )
        return 100 * float(((public @ engine.run(rounds) > 0) == known).mean())

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    epsilons = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    styles = {"trusted_server": "#1f6f8b", "participants_only": "#7a9e3b", "always_send": "#c0573b"}
    for place, (mode, colour) in enumerate(styles.items()):
        middle, error = [], []
        for epsilon in epsilons:
            noise = RandomParticipationSGD(
                0.1, 0.5, 1.0, epsilon=epsilon, delta=1e-6, rounds=rounds, local_size=bound,
                mode=mode,
            ).noise_multiplier  # fmt: skip
            found = [
                accuracy(clip=1.0, noise_multiplier=noise, mode=mode, seed=seed) for seed in seeds
            ]
            middle.append(np.mean(found))
            error.append(np.std(found, ddof=1) / len(found) ** 0.5)
        shifted = epsilons * 1.04 ** (place - 1)
        axes.errorbar(shifted, middle, yerr=error, fmt="o-", color=colour, capsize=3, label=mode)
    axes.axhline(
        accuracy(clip=np.inf, noise="none", seed=1), color="0.5", linestyle=":", label="no noise"
    )
    axes.set(xscale="log", xlabel="epsilon of the whole training (delta = 1e-6)")
    axes.set_ylabel("accuracy on public data (%)")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    return figure


def private_samples() -> Any:
    """Draw the days of ``guides/private_samples.rst``, of more people: real and released."""
    generator = np.random.default_rng(5)
    active = generator.random((200, 1)) < 0.4
    walked = generator.normal(np.where(active, 75.0, 25.0), 8.0, (200, 40))
    slept = generator.normal(np.where(active, 7.8, 6.3), 0.4, (200, 40))
    days = np.stack([walked, slept], axis=2).clip([0, 3], [120, 11])
    references = {
        "bounds as reference": tn.samplers.Uniform([0, 3], [120, 11]),
        "table as reference": tn.samplers.Normal([45, 7], [[625, 0], [0, 1]]),
    }
    panels = {"real days": days[:, 0]}
    for title, reference in references.items():
        sampler = tn.samplers.MollifiedDensity(2.0, reference=reference, random_state=1)
        users = np.repeat(np.arange(200), 40)
        panels[title] = tn.samplers.sample_population(
            sampler, days.reshape(-1, 2), users, seed=1
        ).draws
    figure, grid = plt.subplots(
        1, 3, figsize=(10.0, 3.7), layout="constrained", sharex=True, sharey=True
    )
    for axes, (title, points) in zip(grid, panels.items(), strict=True):
        near = (np.abs(points - days.mean(axis=1)) < [16, 0.8]).all(axis=1)
        for group, colour, name in (
            (active[:, 0], "#c0573b", "active people"),
            (~active[:, 0], "#1f6f8b", "others"),
        ):
            axes.scatter(*points[group].T, s=9, color=colour, alpha=0.7, label=name)
        axes.set_title(
            f"{title}\nnear the person's mean: {near.mean():.0%}", fontsize=10, loc="left"
        )
        axes.set_xlabel("minutes walked")
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_ylabel("hours slept")
    figure.legend(
        *grid[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2
    )
    return figure


def main() -> None:
    """Draw all of them."""
    save(survey_planning(), "guide_survey_planning")
    save(survey_sites(), "guide_survey_sites")
    write_figure(telemetry_days(), "guide_telemetry_days")
    write_figure(small_group(), "guide_small_group")
    write_figure(federated(), "guide_federated")
    write_figure(federated_history(), "guide_federated_history")
    write_figure(private_samples(), "guide_private_samples")
    save(ratings(), "start_ratings")


if __name__ == "__main__":
    main()
