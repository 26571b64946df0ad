"""What the tests of permanent answers share."""

from __future__ import annotations

import pytest
from tests.frequency.longitudinal.chains import CHAINS, chain

from turnout.frequency.longitudinal import Memoized


@pytest.fixture(params=tuple(CHAINS))
def memoized(request: pytest.FixtureRequest) -> Memoized:
    return chain(request.param)
