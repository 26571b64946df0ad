"""The verbs of a randomizer import nothing: a fork in the middle of an import would hang."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import turnout as tn
from turnout.frequency.choice import oracle_classes

people = tn.Personalized(np.linspace(0.1, 1.0, 60))
answers = np.arange(60) % 5
randomizers = [
    (oracle_classes()[name](1.0, 5), answers) for name in NAMES
]
means = (tn.mean.Duchi, tn.mean.Hybrid, tn.mean.Piecewise)
randomizers += [(kind(1.0, (0.0, 5.0)), answers * 1.0) for kind in means]
before = set(sys.modules)
for randomizer, values in randomizers:
    for who in (tn.Everyone(), tn.Bernoulli(0.5), people):
        reports = randomizer.randomize(values, participation=who)
        randomizer.tally(reports)
        randomizer.collect(values, participation=who)
    if isinstance(randomizer, tn.FrequencyOracle):
        randomizer.simulate([10] * 5)
print(sorted(name for name in set(sys.modules) - before if name.startswith("turnout")))
"""

NAMES = ["direct_encoding", "optimized_unary_encoding", "subset_selection", "count_mean_sketch"]


def test_no_verb_of_a_randomizer_imports_a_module() -> None:
    program = f"NAMES = {NAMES!r}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
