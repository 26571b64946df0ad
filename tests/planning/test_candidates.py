"""No oracle that planning proposes spends more than was asked for."""

from __future__ import annotations

import pytest

import turnout as tn
from turnout.errors import InvalidValueError


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.5, 1.0, 3.0, 10.0, 42.0])
@pytest.mark.parametrize("size", [2, 5, 100, 10_000])
def test_no_candidate_spends_more_than_epsilon(epsilon: float, size: int) -> None:
    choice = tn.choose_oracle(epsilon, size)
    made = [each.oracle for each in choice.candidates if each.oracle is not None]
    assert choice.oracle in made
    assert all(oracle.epsilon <= epsilon for oracle in made)
    assert all(oracle.realized_epsilon <= epsilon for oracle in made)


def test_a_callable_that_spends_more_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"no oracle takes.*at most the epsilon 1"):
        tn.choose_oracle(1.0, 4, oracles=[lambda _, domain: tn.DirectEncoding(2.0, domain)])
    with pytest.raises(InvalidValueError, match="the domain"):
        tn.choose_oracle(1.0, 4, oracles=[lambda epsilon, _: tn.DirectEncoding(epsilon, 3)])
