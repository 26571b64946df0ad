"""Streams of a key: a column drawn piece by piece is the column drawn at once."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import turnout as tn
from turnout import _core
from turnout._seeds import derived
from turnout.errors import InvalidValueError

CHUNK = 2**16
ORACLES = [
    tn.DirectEncoding(1.0, 10),
    tn.OptimizedUnaryEncoding(1.0, 70),
    tn.ThresholdHistogramEncoding(1.0, 5),
    tn.SummationHistogramEncoding(1.0, 3),
    tn.OptimizedLocalHashing(1.0, 10),
    tn.SubsetSelection(1.0, 10),
    tn.HadamardResponse(1.0, 10),
    tn.ProjectiveGeometryResponse(1.0, 10),
    tn.CountMeanSketch(1.0, 10),
    tn.HadamardCountMeanSketch(1.0, 10),
]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
@pytest.mark.parametrize("rate", [1.0, 0.3, 0.002])
def test_pieces_that_begin_with_a_chunk_draw_what_the_whole_draws(oracle, rate):
    codes = np.random.default_rng(1).integers(0, oracle.domain.size, 2 * CHUNK + 999)
    codes = codes.astype(np.uint32)
    kernel = oracle._kernel
    whole, _ = kernel.randomize(codes, rate, 5)
    pieces = [
        kernel.randomize(codes[start : start + CHUNK], rate, _core.NoiseStreams.from_seed(5, at))[0]
        for at, start in enumerate(range(0, codes.size, CHUNK))
    ]
    assert np.array_equal(np.concatenate(pieces), whole)
    positions = _core.participants(codes.size, rate, 5)
    assert len(positions) == len(whole)
    # Only participants' answers matter: with others changed the reports are the same.
    changed = (codes + 1) % oracle.domain.size
    changed[positions] = codes[positions]
    assert np.array_equal(kernel.randomize(changed.astype(np.uint32), rate, 5)[0], whole)


def test_participants_with_personal_probabilities_are_those_whose_probability_comes_back():
    probabilities = np.random.default_rng(2).uniform(0.01, 1, 2 * CHUNK + 5)
    kernel = tn.DirectEncoding(1.0, 4)._kernel
    codes = np.zeros(probabilities.size, np.uint8)
    streams = _core.NoiseStreams(bytes(range(32)), 7)
    _, kept = kernel.randomize(codes, probabilities, streams)
    positions = _core.participants(probabilities.size, probabilities, streams)
    assert np.array_equal(probabilities[positions], kept)


def test_another_key_and_another_chunk_are_other_noise():
    kernel = tn.DirectEncoding(1.0, 4)._kernel
    codes = np.zeros(1000, np.uint8)
    drawn = [
        kernel.randomize(codes, 1.0, streams)[0].tobytes()
        for streams in (
            _core.NoiseStreams(bytes(32)),
            _core.NoiseStreams(bytes(32), 1),
            _core.NoiseStreams(bytes([1, *bytes(31)])),
            _core.NoiseStreams.from_seed(0),
        )
    ]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_has_32_bytes(length):
    with pytest.raises(InvalidValueError, match=f"key must have 32 bytes, got {length}"):
        _core.NoiseStreams(bytes(length))


def test_the_key_is_not_shown_and_makes_no_seed():
    streams = _core.NoiseStreams(b"k" * 32)
    assert "k" * 4 not in repr(streams) + str(streams)
    with pytest.raises(tn.TurnoutError, match="seed must be an integer"):
        derived("seed", 1)


def test_digests_are_equal_for_equal_entries_and_differ_by_key_and_context():
    data = np.frombuffer(b"annbobannx", np.uint8)
    offsets = np.array([0, 3, 6, 9, 9, 10])
    digests = _core.keyed_digests(offsets, data, bytes(32), b"survey")
    assert digests.shape == (5, 16)
    assert np.array_equal(digests[0], digests[2])
    assert len(np.unique(digests, axis=0)) == 4
    for key, context in ((b"1" * 32, b"survey"), (bytes(32), b"other")):
        assert not np.array_equal(_core.keyed_digests(offsets, data, key, context), digests)


def test_digests_look_uniform():
    count = 200_000
    data = np.arange(count).view(np.uint8)
    digests = _core.keyed_digests(np.arange(0, 8 * count + 1, 8), data, bytes(32), b"")
    assert len(np.unique(digests.view(np.uint64)[:, 0])) == count
    bits = np.unpackbits(digests, axis=1).sum(axis=0)
    # 128 binomial counts: alpha = 1e-6 in all is 5.8 standard deviations.
    assert np.abs(bits - count / 2).max() < 5.8 * np.sqrt(count) / 2
    assert (
        hashlib.sha256(digests.tobytes()).hexdigest()
        == hashlib.sha256(
            _core.keyed_digests(np.arange(0, 8 * count + 1, 8), data, bytes(32), b"").tobytes()
        ).hexdigest()
    )


@pytest.mark.parametrize("offsets", [[0, 4], [2, 1], [-1, 2]])
def test_offsets_outside_the_data_are_refused(offsets):
    with pytest.raises(tn.TurnoutError, match="offsets"):
        _core.keyed_digests(np.array(offsets), np.zeros(3, np.uint8), bytes(32), b"")
