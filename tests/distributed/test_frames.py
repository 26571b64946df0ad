"""Frames and acknowledgements, as bytes."""

from __future__ import annotations

from types import ModuleType

import pytest

from turnout import errors
from turnout.distributed.transport.frames import ACCEPTED, frame, read_acknowledgement, refused
from turnout.errors import MalformedMessageError, ProtocolError


def test_frames_are_read_as_they_were_written(sockets: ModuleType) -> None:
    contents = [b"", b"a", bytes(range(100))]
    assert sockets.read_all(b"".join(map(frame, contents))) == contents
    assert frame(b"a" * 258)[:4] == b"\x02\x01\x00\x00"


@pytest.mark.parametrize("kept", [1, 3, 4, 5, 13])
def test_a_stream_that_ends_within_a_frame_is_malformed(sockets: ModuleType, kept: int) -> None:
    with pytest.raises(MalformedMessageError, match="a frame was truncated"):
        sockets.read_all(frame(b"0123456789")[:kept])


def test_frames_above_the_limit_are_refused_before_they_are_read(sockets: ModuleType) -> None:
    assert sockets.read_all(frame(b"a" * 100)) == [b"a" * 100]
    with pytest.raises(MalformedMessageError, match="at most 100 bytes, got one of 101"):
        sockets.read_all(frame(b"a" * 101))
    with pytest.raises(MalformedMessageError, match="got one of 4294967295"):
        sockets.read_all(b"\xff\xff\xff\xff")


def test_acknowledgements_name_the_error() -> None:
    assert read_acknowledgement(ACCEPTED) is None
    for name in errors.__all__:
        error = getattr(errors, name)("what is wrong, été\nin two lines")
        found = read_acknowledgement(refused(error))
        assert type(found) is type(error)
        assert str(found) == str(error)


def test_acknowledgements_of_others_are_read_with_care() -> None:
    unknown = read_acknowledgement(b"\x01SystemExit\nnot this one")
    assert type(unknown) is ProtocolError
    assert str(unknown) == "not this one"
    for content in (b"", b"\x00\x00", b"\x02", b"\x01ProtocolError", b"\x07ProtocolError\nno"):
        assert isinstance(read_acknowledgement(content), MalformedMessageError)
    assert len(refused(ProtocolError("é" * 10_000))) < 5_000
    assert isinstance(read_acknowledgement(refused(ProtocolError("é" * 10_000))), ProtocolError)
