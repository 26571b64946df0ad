"""A server behind nginx, with the files of ``examples/serve``: TLS, limits, and no addresses."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.serve.conftest import Running
from tests.serve.waiting import PATIENCE, free_port, until

import turnout as tn

EXAMPLES = Path(__file__).parents[2] / "examples" / "serve"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        NGINX is None, reason="nginx is not installed (on Debian: apt install nginx-light)"
    ),
]

PLAN = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())
#: The address from which clients come: a look for it finds nothing that has another reason.
CLIENT = "127.0.0.77"


def message() -> bytes:
    made = PLAN.report("yes")
    assert made is not None
    return made


class Proxy:
    """An nginx that runs as the one who tests, with a certificate of its own."""

    def __init__(self, folder: Path, servers: Sequence[tuple[str, int]]) -> None:
        self.folder = folder
        self.plain, self.port = free_port(), free_port()
        authority = trustme.CA()
        certificate = authority.issue_cert("localhost")
        certificate.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
        certificate.private_key_pem.write_to_path(folder / "key.pem")
        shutil.copy(EXAMPLES / "nginx.conf", folder)
        lines = (f"server {host}:{port};\n" for host, port in servers)
        (folder / "servers.conf").write_text("".join(lines))
        (folder / "site.conf").write_text(self._site())
        self.context = ssl.create_default_context()
        authority.configure_trust(self.context)
        self.address = f"https://localhost:{self.port}"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)

    def _site(self) -> str:
        """The example's file with other ports and another certificate."""
        text = (EXAMPLES / "site.conf").read_text()
        theirs = "/etc/letsencrypt/live/survey.example.org"
        for before, after in {
            "survey.example.org;": "localhost;",
            "listen 80;": f"listen 127.0.0.1:{self.plain};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "listen [::]:80;\n": "",
            "listen [::]:443 ssl;\n": "",
            f"{theirs}/fullchain.pem": f"{self.folder}/certificate.pem",
            f"{theirs}/privkey.pem": f"{self.folder}/key.pem",
        }.items():
            assert text.count(before) == 1
            text = text.replace(before, after)
        return text

    def command(self, *more: str) -> list[str]:
        assert NGINX is not None
        said = f"daemon off; pid {self.folder}/nginx.pid;"
        return [
            NGINX,
            "-p",
            str(self.folder),
            "-c",
            "nginx.conf",
            "-e",
            "stderr",
            "-g",
            said,
            *more,
        ]

    def wait(self) -> None:
        def listens() -> bool:
            assert self.process.poll() is None, self.log()
            with contextlib.suppress(OSError), self.connected():
                return True
            return False

        until(listens, self.log)

    def connected(self) -> socket.socket:
        """A connection of a client, encrypted."""
        raw = socket.create_connection(("127.0.0.1", self.port), PATIENCE, (CLIENT, 0))
        return self.context.wrap_socket(raw, server_hostname="localhost")

    def client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(verify=self.context, local_address=CLIENT)
        return httpx.Client(base_url=self.address, transport=transport, timeout=PATIENCE)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """What starts an nginx in front of servers."""
    started: list[Proxy] = []

    def start(*servers: Running) -> Proxy:
        folder = tmp_path / "nginx"
        folder.mkdir()
        started.append(Proxy(folder, [one.host for one in servers]))
        started[-1].wait()
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def client(
    serving: Callable[..., Running], proxied: Callable[..., Proxy]
) -> Iterator[httpx.Client]:
    """A client of a server behind nginx."""
    with proxied(serving(PLAN)).client() as found:
        yield found


def test_nginx_finds_nothing_wrong(proxied: Callable[..., Proxy], serving: Any) -> None:
    proxy = proxied(serving(PLAN))
    done = subprocess.run(proxy.command("-t"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert [line.rpartition(" ")[2] for line in said] == ["ok", "successful"]


@pytest.mark.everyday
def test_messages_go_through(client: httpx.Client) -> None:
    sent = [message() for _ in range(50)]
    answer = client.post("/reports", content=b"\n".join(sent))
    assert answer.json() == {"accepted": 50, "duplicates": 0, "refused": {}}
    assert client.post("/reports", content=iter(sent[:1])).json()["duplicates"] == 1
    assert client.get("/results.json").json()["received"] == 50
    assert answer.headers["strict-transport-security"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "nginx/" not in answer.headers["server"]
    for path in ("/", "/plan.json", "/turnout.js", "/results", "/openapi.json"):
        assert client.get(path).status_code == 200
    for path in ("/metrics", "/health"):
        answer = client.get(path)
        assert (answer.status_code, answer.text.count("\n")) == (404, 1)


def test_a_file_that_was_not_changed_is_not_sent_again(client: httpx.Client) -> None:
    for path in ("/turnout.js", "/plan.json"):
        first = client.get(path)
        assert first.headers.get("content-encoding") == "gzip"
        again = client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_body_is_refused_once_it_is_too_large(client: httpx.Client) -> None:
    # The first two by the server, whose limit follows from the plan; the last by nginx.
    large, larger = b" " * 5 * 2**20, b" " * 9 * 2**20
    for body in (large, iter([large]), larger, large, iter([large]), larger):
        answer = client.post("/reports", content=body, headers={"connection": "close"})
        assert answer.status_code == 413
        assert answer.text.count("\n") == 1
    assert client.post("/reports", content=message()).json()["accepted"] == 1


def test_a_body_reaches_the_server_as_it_comes(
    serving: Callable[..., Running], proxied: Callable[..., Proxy]
) -> None:
    # nginx says nothing to who sends too slowly: whoever gets an answer, the server saw the body.
    proxy = proxied(serving(PLAN, "--request-seconds", 2))
    head = b"POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"
    with proxy.connected() as slow, proxy.client() as client:
        slow.sendall(head + b"{")
        assert client.post("/reports", content=message()).json()["accepted"] == 1
        assert slow.recv(2**16).startswith(b"HTTP/1.1 408 ")
    assert not [path for path in proxy.folder.rglob("*") if path.stat().st_size > 10**5]


def test_clients_learn_when_to_try_again(
    serving: Callable[..., Running], proxied: Callable[..., Proxy]
) -> None:
    one, two = serving(PLAN), serving(PLAN)
    proxy = proxied(one, two)
    with proxy.client() as client:
        one.kill()
        for _ in range(10):
            assert client.post("/reports", content=message()).json()["accepted"] == 1
        two.kill()
        answer = client.post("/reports", content=message())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "send the same again" in answer.text
    # All at once: more than a hundred, and more than ten in the time that they take.
    with proxy.connected() as many:
        many.sendall(b"GET /plan.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 300)
        answers = b""
        while b"HTTP/1.1 429 " not in answers or not answers.endswith(b"send the same again\n"):
            piece = many.recv(2**16)
            assert piece
            answers += piece
    assert b"Retry-After: 10\r\n" in answers.partition(b"HTTP/1.1 429 ")[2]


def test_who_comes_without_tls_is_led_to_it(proxied: Callable[..., Proxy], serving: Any) -> None:
    proxy = proxied(serving(PLAN))
    answer = httpx.get(
        f"http://127.0.0.1:{proxy.plain}/results", headers={"host": "localhost"}, timeout=PATIENCE
    )
    assert (answer.status_code, answer.headers["location"]) == (301, "https://localhost/results")


def test_no_address_is_written_down(
    serving: Callable[..., Running], proxied: Callable[..., Proxy]
) -> None:
    server = serving(PLAN)
    proxy = proxied(server)
    with proxy.client() as client:
        headers = {"x-forwarded-for": CLIENT, "forwarded": f"for={CLIENT}", "user-agent": CLIENT}
        for path in ("/", "/nothing", "/metrics"):
            client.get(path, headers=headers)
        client.post("/reports", content=message(), headers=headers)
        client.post("/reports", content=b" " * 9 * 2**20, headers=headers)
        for _ in range(200):
            client.get("/plan.json", headers=headers)
    # What is no TLS, what is no HTTP, and who goes away in the middle.
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE, (CLIENT, 0)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    for junk in (b"\0" * 100, b"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab"):
        with proxy.connected() as connection:
            connection.sendall(junk)
    server.stop()
    with proxy.client() as client:
        client.get("/plan.json", headers=headers)
    proxy.process.terminate()
    proxy.process.wait(PATIENCE)
    written = [path.read_bytes() for path in proxy.folder.parent.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [
        text for text in [*written, "".join(server.log).encode()] if CLIENT.encode() in text
    ]


def test_a_person_answers_through_it(serving: Callable[..., Running], proxied: Any) -> None:
    chromium = shutil.which("chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    server = serving(PLAN, "--title", "Do you travel?", "--least", 1)
    proxy = proxied(server)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=1000 * PATIENCE
        )
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(proxy.address)
        page.get_by_label("yes").check()
        page.get_by_role("button", name="Make my answer private").click()
        page.get_by_role("button", name="Send this message").click()
        page.get_by_role("heading", name="Your answer has arrived").wait_for()
        browser.close()
    assert server.results()["received"] == 1
