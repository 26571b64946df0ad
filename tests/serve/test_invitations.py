"""Invitations and tickets: each lets one message in, and nobody can tell whose it was."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from tests.serve.clients import MISSING, NODE

from turnout import _core
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.serve.invitations import Invitations

HERE = Path(__file__).parent
VECTOR = HERE.parent.parent / "rust" / "tests" / "rfc9474.txt"

Call = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def blind() -> tuple[Invitations, list[str]]:
    return Invitations.create(20, blind=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Call]:
    if NODE is None:
        pytest.skip(MISSING)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [NODE, HERE / "tickets.mjs"], stdin=pipe, stdout=pipe, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None

        def call(name: str, **given: Any) -> dict[str, Any]:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(json.dumps({"call": name, **given}) + "\n")
            running.stdin.flush()
            answer: dict[str, Any] = json.loads(running.stdout.readline())
            return answer

        yield call
        running.stdin.close()


def test_each_token_has_a_mark_of_its_own() -> None:
    invitations, tokens = Invitations.create(500)
    marks = {invitations.mark_of_token(token) for token in tokens}
    assert None not in marks
    assert len(marks) == len(set(tokens)) == invitations.number == 500
    assert not invitations.blind
    assert invitations.public_key is None


@pytest.mark.parametrize(
    "token", ["", "A" * 22, "A" * 21, "A" * 23, "é" * 22, "A" * 10_000, "\n" * 22, "A" * 21 + "\n"]
)
def test_nobody_is_invited_by_another_token(token: str) -> None:
    invitations, _ = Invitations.create(3)
    assert invitations.mark_of_token(token) is None


def test_a_file_gives_the_same_invitations(blind: Any, tmp_path: Path) -> None:
    for name, (invitations, tokens) in {"open": Invitations.create(50), "blind": blind}.items():
        path = tmp_path / f"{name}.json"
        invitations.write(path)
        again = Invitations.read(path)
        assert again.public_key == invitations.public_key
        assert again.blind == invitations.blind
        for token in tokens:
            assert again.mark_of_token(token) == invitations.mark_of_token(token)
            assert token not in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
        with pytest.raises(FileExistsError):
            invitations.write(path)


def test_an_altered_file_is_refused_and_not_shown(blind: Any, tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    blind[0].write(whole)
    record = json.loads(whole.read_text())
    digests = base64.b64decode(record["digests"])
    swapped = digests[32:64] + digests[:32] + digests[64:]
    cases = [
        {**record, "version": 2},
        {**record, "more": 1},
        {**record, "digests": ""},
        {**record, "digests": record["digests"][:-4]},
        {**record, "digests": base64.b64encode(swapped).decode()},
        {**record, "digests": base64.b64encode(digests + digests[-32:]).decode()},
        {**record, "digests": "*" * 44},
        {**record, "key": "AAAA"},
        {**record, "key": record["key"][:-8]},
        {key: value for key, value in record.items() if key != "key"},
        [record],
    ]
    for number, case in enumerate(cases):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(case))
        path.chmod(0o600)
        with pytest.raises(CorruptDataError) as refused:
            Invitations.read(path)
        assert record["key"][:20] not in str(refused.value)
        assert record["digests"][:20] not in str(refused.value)


def test_nothing_shows_the_key(blind: Any) -> None:
    invitations, _ = blind
    assert repr(invitations) == "<Invitations of 20 people, blind>"
    with pytest.raises(InvalidTypeError):
        pickle.dumps(invitations)
    for number in (0, -1, 1.5, "3", True, 10_000_001):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            Invitations.create(number)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="not blind"):
        Invitations.create(1)[0].sign("AAAA")


def test_a_ticket_is_taken_once_signed(blind: Any) -> None:
    invitations, _ = blind
    request = _core.TicketRequest(base64.b64decode(invitations.public_key))
    answer = invitations.sign(_text(request.blinded))
    assert answer == invitations.sign(_text(request.blinded))
    ticket = _text(request.finish(_bytes(answer)))
    mark = invitations.mark_of_ticket(ticket)
    assert mark is not None
    assert mark == invitations.mark_of_ticket(ticket)
    elsewhere, _ = Invitations.create(1, blind=True)
    assert elsewhere.mark_of_ticket(ticket) is None
    other = ("B" if ticket[0] == "A" else "A") + ticket[1:]
    for wrong in ("", "A", ticket[:-4], ticket + "AAAA", other, "*" * 427, "A" * 10**6):
        assert invitations.mark_of_ticket(wrong) is None
    for wrong in ("", "AAAA", "*", "_" * 342, "A" * 10**6):
        with pytest.raises(InvalidValueError):
            invitations.sign(wrong)


def test_another_library_accepts_the_signature(blind: Any) -> None:
    """RFC 9474: the result is an RSA-PSS signature like any other."""
    invitations, _ = blind
    spki = base64.b64decode(invitations.public_key)
    request = _core.TicketRequest(spki)
    ticket = request.finish(_bytes(invitations.sign(_text(request.blinded))))
    number, randomizer, signature = ticket[:32], ticket[32:64], ticket[64:]
    key = load_der_public_key(spki)
    assert isinstance(key, rsa.RSAPublicKey)
    pss = padding.PSS(padding.MGF1(hashes.SHA384()), salt_length=48)
    key.verify(signature, randomizer + number, pss, hashes.SHA384())


def test_the_browser_computes_the_vector_of_the_rfc(browser: Call) -> None:
    given = dict(line.split(" ", 1) for line in VECTOR.read_text().splitlines()[1:])
    modulus, exponent = int(given["n"], 16), int(given["e"], 16)
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    factor = pow(int(given["inv"], 16), -1, modulus)
    blinded = browser(
        "vector",
        publicKey=base64.b64encode(spki).decode(),
        message=given["msg_prefix"] + given["msg"],
        salt=given["salt"],
        factor=f"{factor:01024x}",
    )
    assert _bytes(blinded["given"]).hex() == given["blinded_msg"]


def test_the_server_takes_what_the_browser_makes(blind: Any, browser: Call) -> None:
    invitations, _ = blind
    marks = set()
    for _ in range(5):
        state = browser("request", publicKey=invitations.public_key)["given"]
        answer = invitations.sign(state["blinded"])
        ticket = browser("finish", state=state, answer=answer)["given"]
        marks.add(invitations.mark_of_ticket(ticket))
        wrong = browser(
            "finish", state=state, answer=("B" if answer[0] == "A" else "A") + answer[1:]
        )
        assert wrong["code"] == "answer"
    assert None not in marks
    assert len(marks) == 5


def test_the_browser_refuses_keys_and_states_that_it_cannot_use(blind: Any, browser: Call) -> None:
    invitations, _ = blind
    short = rsa.generate_private_key(65537, 1024).public_key()
    der = short.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    for key in ("", "AAAA", "*", base64.b64encode(der).decode()):
        assert browser("request", publicKey=key)["code"] == "key"
    state = browser("request", publicKey=invitations.public_key)["given"]
    for wrong in (
        {**state, "message": "AAAA"},
        {**state, "inverse": "*"},
        {**state, "blinded": None},
    ):
        assert browser("finish", state=wrong, answer="AAAA")["code"] == "state"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
