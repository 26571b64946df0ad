"""A round of distributed aggregation, every party in a process of its own, over sockets.

    python examples/aggregation/run.py
    python examples/aggregation/run.py --tls
    python examples/aggregation/run.py --two-stage
    python examples/aggregation/run.py --kill-aggregator
    python examples/aggregation/run.py --csv people.csv --column state

Needs turnout alone; --tls needs trustme, which makes the certificates.
"""

from __future__ import annotations

import argparse
import csv
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from deployment import Deployment

import turnout as tn
from turnout.distributed import (
    AggregationMechanism,
    CostLedger,
    Costs,
    NoisyAggregation,
    Party,
    Role,
    Round,
    SamplingAggregation,
    TwoStageSampling,
)
from turnout.errors import TurnoutError

TRANSPORT = (
    "walk", "bicycle", "bus", "train", "car", "tram", "scooter", "ferry", "taxi", "horse", "skates",
    "balloon",
)  # fmt: skip
BAR = 24
AGGREGATORS = 3
DUMMIES = 100
DELTA = 1e-5


def count(text: str) -> int:
    """Read a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def options() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description="a round, every party in a process of its own")
    parser.add_argument(
        "--users",
        type=count,
        help="3000, or 600 with --two-stage; with --csv the first rows only, all by default",
    )
    parser.add_argument("--aggregators", type=count, help=f"{AGGREGATORS} by default")
    parser.add_argument("--items", type=count, help="12, or 6 with --two-stage")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--delta", type=float, help=f"{DELTA:g} by default, 0 with --noise discrete_laplace"
    )
    parser.add_argument(
        "--noise",
        choices=("discrete_laplace", "discrete_gaussian", "skellam"),
        help="add noise instead of sampling",
    )
    parser.add_argument(
        "--dummies", type=int, help=f"on every item, for sampling; {DUMMIES} by default"
    )
    parser.add_argument("--csv", type=Path, help="answers: a column of this file")
    parser.add_argument("--column", help="which column of it")
    parser.add_argument("--tls", action="store_true", help="TLS, with certificates on both sides")
    parser.add_argument("--two-stage", action="store_true", help="two servers and elected users")
    parser.add_argument(
        "--kill-aggregator", action="store_true", help="kill one while users report"
    )
    given = parser.parse_args()
    if (given.csv is None) != (given.column is None):
        parser.error("--csv and --column belong together")
    if given.two_stage and given.kill_aggregator:
        parser.error("--two-stage has no aggregator to kill")
    if given.two_stage and (given.noise is not None or given.aggregators is not None):
        parser.error("--two-stage has no --noise and no --aggregators")
    if given.noise is not None and given.dummies is not None:
        parser.error("--dummies are for sampling, not for --noise")
    if given.csv is not None and given.items is not None:
        parser.error("--items are those of the column with --csv")
    if given.items is None:
        given.items = 6 if given.two_stage else 12
    if given.aggregators is None:
        given.aggregators = AGGREGATORS
    if given.dummies is None:
        given.dummies = DUMMIES
    if given.delta is None:
        given.delta = 0.0 if given.noise == "discrete_laplace" else DELTA
    return given


def read_answers(given: argparse.Namespace) -> tuple[tn.Domain, list[Any]]:
    """Read or make an answer for each user."""
    if given.csv is not None:
        answers = read_column(given.csv, given.column)[: given.users]
        return tn.Domain(sorted(set(answers))), answers
    users = given.users
    if users is None:
        users = 600 if given.two_stage else 3000
    labels = [*TRANSPORT, *(f"other {index}" for index in range(given.items))][: given.items]
    weights = 1.0 / np.arange(1, given.items + 1)
    drawn = np.random.default_rng().choice(labels, size=users, p=weights / weights.sum())
    return tn.Domain(labels), drawn.tolist()


def read_column(path: Path, column: str) -> list[str]:
    """Read a column of a CSV file."""
    answers = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        if column not in (rows.fieldnames or ()):
            sys.exit(f"error: {path} has no column {column!r}")
        for row in rows:
            if row[column] is None:
                sys.exit(f"error: {path}, line {rows.line_num}: no {column!r}")
            answers.append(row[column])
    return answers


def make_mechanism(
    given: argparse.Namespace, domain: tn.Domain, users: int
) -> AggregationMechanism:
    """Calibrate what was asked for."""
    target = {"epsilon": given.epsilon, "delta": given.delta}
    if given.two_stage:
        # Five users are elected for each item, and two of them add dummies: any one may collude.
        return TwoStageSampling(
            domain,
            users,
            reported=max(1, 2 * domain.size // 3),
            dummies=given.dummies,
            elected=min(5, users),
            max_colluding_users=1,
            **target,
        )
    if given.noise is not None:
        return NoisyAggregation(
            domain, users, noise=given.noise, parties=given.aggregators, **target
        )
    return SamplingAggregation(
        domain, users, dummies=given.dummies, parties=given.aggregators, **target
    )


def main() -> None:
    """Run the round and show what came of it."""
    # An exit, so that the folder with the answers and keys is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = options()
    try:
        domain, answers = read_answers(given)
        mechanism = make_mechanism(given, domain, len(answers))
    except UnicodeDecodeError:
        sys.exit(f"error: {given.csv} is not a text file in UTF-8")
    except (TurnoutError, OSError, csv.Error) as error:
        sys.exit(f"error: {error}")
    print(mechanism.guarantee)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        patience = ["--connect-within", 2 if given.kill_aggregator else 10]
        patience += ["--finish-within", 5 if given.kill_aggregator else 600]
        deployment = Deployment(
            Round.start(mechanism), answers, Path(folder), tls=given.tls, options=patience
        )
        with deployment:
            started = time.perf_counter()
            started_processes = len(deployment.processes) + deployment.user_processes
            print(f"\n{started_processes} processes, {'TLS' if given.tls else 'no TLS'}:")
            for entry in deployment.book:
                host, port = entry["address"]
                who = Party(Role(entry["role"]), entry["first"])
                many = f" to {entry['first'] + entry['count'] - 1}" if entry["count"] > 1 else ""
                print(f"  {f'{who}{many}':<24} {host}:{port}")
            if given.kill_aggregator:
                sys.exit(kill_one(deployment, given.aggregators - 1))
            devices = deployment.report()
            ends = deployment.ends()
        finished = time.perf_counter()
    failures = [end for end in ends.values() if end["event"] == "failed"]
    if failures:
        sys.exit("\n".join(f"{end['error']}: {end['text']}" for end in failures))
    published = ends[Party(Role.SERVER)]
    show_estimates(published, Counter(answers), len(answers))
    if mechanism.expected_error() > 1.0 / domain.size:
        error = 100 * mechanism.expected_error()
        print(f"Expected error {error:,.1f} %: too few users for this mechanism.")
    show_costs(ledger(mechanism, ends, devices))
    begin, last = started - begun, finished - started
    print(f"\nThe processes took {begin:.1f} s to start, the round {last:.1f} s.")


def kill_one(deployment: Deployment, index: int) -> int:
    """Kill an aggregator when half of the users have reported, and show who notices."""
    deployment.report([0])
    victim = Party(Role.AGGREGATOR, index)
    deployment.kill(victim)
    print(f"\nHalf of the users have reported; {victim} was killed.")
    (rest,) = deployment.report([1])
    print(f"{len(rest['undelivered']):,} shares did not arrive: {rest['undelivered'][0]['text']}")
    deployment.close_collection()
    for party, end in deployment.ends().items():
        print(f"{party} ends: {end['error']}: {end['text']}")
    print("Nothing is published, and every share is forgotten.")
    return 1


def show_estimates(published: dict[str, Any], truth: Counter[Any], users: int) -> None:
    """Print the estimates with bars, beside the truth that only this demonstration knows."""
    records = sorted(published["estimates"], key=lambda record: -record["frequency"])
    inside = 0
    print(f"\n{published['received']:,} users; 95 % intervals for all items together, in %\n")
    print(f"{'item':<14}{'truth':>8}{'estimate':>10}{'interval':>18}")
    largest = max(record["frequency"] for record in records)
    for record in records:
        label, frequency = record["label"], record["frequency"]
        low, high = record["low"], record["high"]
        true = truth[label] / users
        inside += low <= true <= high
        bar = "#" * max(0, round(BAR * frequency / largest)) if largest > 0 else ""
        between = f"{100 * low:.2f} to {100 * high:.2f}"
        mark = "  " if low <= true <= high else " !"
        numbers = f"{100 * true:>8.2f}{100 * frequency:>10.2f}{between:>18}"
        print(f"{str(label)[:13]:<14}{numbers}{mark}{bar}")
    print(f"\n{inside} of the {len(records)} intervals hold the truth.")


def show_costs(costs: CostLedger) -> None:
    """Print what one party of each role did, beside the paper's Table 1."""
    names = ("messages", "bytes", "additions", "draws", "coins", "noise")
    print(f"\n{'each':<20}{'parties':>8}" + "".join(f"{name:>11}" for name in names))
    for role in costs.totals:
        lines = [(role, f"{costs.parties[role]:,}", costs.average(role))]
        if role in costs.formulas:
            lines.append(("  by the paper", "", costs.formulas[role]))
        for title, parties, each in lines:
            numbers = "".join(f"{getattr(each, name):>11,.0f}" for name in names)
            print(f"{title:<20}{parties:>8}{numbers}")


def ledger(
    mechanism: AggregationMechanism,
    ends: dict[Party, dict[str, Any]],
    devices: list[dict[str, Any]],
) -> CostLedger:
    """Add up what the processes counted."""
    names = {
        Role.USER: "user",
        Role.AGGREGATOR: "aggregator",
        Role.REPORTING_SERVER: "reporting server",
        Role.SERVER: "server",
    }
    totals: dict[str, Costs] = {}
    for end in [*devices, *ends.values()]:
        name = names[Role(end["role"])]
        totals[name] = totals.get(name, Costs()) + Costs(**end["costs"])
    parties = Counter(names[party.role] for party in ends)
    parties["user"] = mechanism.users
    return CostLedger(totals, {name: parties[name] for name in totals}, mechanism.paper_costs())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
