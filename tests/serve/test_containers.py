"""The containers of ``examples/serve``, built and started, where Docker and the images are."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from tests.serve.test_tls import CLIENT, EXAMPLES, PLAN, message
from tests.serve.waiting import PATIENCE, free_port, until

STORE = "postgresql://turnout@database/reports"
WHEELS = Path(__file__).parents[2] / "build" / "wheels"
DOCKER = shutil.which("docker")


def missing() -> str | None:
    """Say why the containers cannot be built and started here."""
    if DOCKER is None:
        return "docker is not installed"
    for words in (["compose", "version"], ["info"]):
        if subprocess.run([DOCKER, *words], capture_output=True, check=False).returncode:
            return f"docker {' '.join(words)} fails"
    files = [EXAMPLES / "Containerfile", EXAMPLES / "compose.yaml"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for image in re.findall(r"^(?:FROM| +image:) (\S+)$", text, re.MULTILINE):
        words = ["image", "inspect", image]
        if subprocess.run([DOCKER, *words], capture_output=True, check=False).returncode:
            return f"the image {image} is not here: run docker pull {image}"
    if not list(WHEELS.glob("turnout-*.whl")):
        return "there is no wheel: run make wheel"
    return None


class Stack:
    """The compose file with other ports, and a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, f"turnout-{secrets.token_hex(4)}"
        plain, self.port, *servers = (free_port() for _ in range(4))
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
        shutil.copy(
            max(WHEELS.glob("turnout-*.whl"), key=lambda path: path.stat().st_mtime), folder
        )
        authority = trustme.CA()
        certificate = authority.issue_cert("localhost")
        place = folder / "letsencrypt" / "live" / "survey.example.org"
        place.mkdir(parents=True)
        certificate.cert_chain_pems[0].write_to_path(place / "fullchain.pem")
        certificate.private_key_pem.write_to_path(place / "privkey.pem")
        self.context = ssl.create_default_context()
        authority.configure_trust(self.context)
        (folder / "plans").mkdir()
        PLAN.write(folder / "plans" / "plan.json")
        (folder / ".env").write_text(f"PASSWORD={secrets.token_hex(24)}\n")
        changes = {
            "compose.yaml": {
                "- /etc/letsencrypt:": "- ./letsencrypt:",
                "127.0.0.1:8081:": f"127.0.0.1:{servers[0]}:",
                "127.0.0.1:8082:": f"127.0.0.1:{servers[1]}:",
            },
            "two_servers.conf": {":8081;": f":{servers[0]};", ":8082;": f":{servers[1]};"},
            "site.conf": {
                "listen 80;": f"listen 127.0.0.1:{plain};",
                "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
                "listen [::]:80;\n": "",
                "listen [::]:443 ssl;\n": "",
            },
        }
        for name, pairs in changes.items():
            text = (folder / name).read_text(encoding="utf-8")
            for before, after in pairs.items():
                assert text.count(before) == 1
                text = text.replace(before, after)
            (folder / name).write_text(text, encoding="utf-8")

    def compose(self, *words: str) -> str:
        """Run ``docker compose``, and give what it says."""
        assert DOCKER is not None
        done = subprocess.run(
            [DOCKER, "compose", "--project-name", self.name, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=10 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def send(self, messages: list[bytes]) -> None:
        """Send each message, 50 at a time, until it is acknowledged."""
        transport = httpx.HTTPTransport(verify=self.context, local_address=CLIENT)
        address = f"https://localhost:{self.port}/reports"
        with httpx.Client(transport=transport, timeout=PATIENCE) as client:
            for start in range(0, len(messages), 50):
                body = b"\n".join(messages[start : start + 50])

                def taken(body: bytes = body) -> bool:
                    # The proxy lets a client make ten requests a second.
                    time.sleep(0.1)
                    with contextlib.suppress(httpx.TransportError):
                        return client.post(address, content=body).status_code == 200
                    return False

                until(taken)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    made = Stack(tmp_path)
    try:
        made.compose("up", "--build", "--detach", "--wait")
        yield made
    finally:
        made.compose("down", "--volumes", "--rmi", "local")


@pytest.mark.slow
def test_the_stack_of_containers_runs(stack: Stack) -> None:
    messages = [message() for _ in range(10_000)]
    sending = threading.Thread(target=stack.send, args=[messages])
    sending.start()
    for server, way in (("server-1", "stop"), ("server-2", "kill"), ("database", "restart")):
        time.sleep(2)
        stack.compose(way, server)
        if way == "stop":
            assert '"ExitCode":0' in stack.compose("ps", "--all", "--format", "json", server)
        stack.compose("start", server)
    sending.join()
    # As a device does that received no acknowledgement.
    stack.send(messages[:100])
    said = stack.compose("exec", "-T", "server-2", "turnout", "store", "check", STORE, "--json")
    assert json.loads(said[said.index("{") :])["reports"] == len(messages)

    # The server has no rights, and only /tmp and /data to write to.
    status = stack.compose("exec", "-T", "server-1", "cat", "/proc/1/status")
    assert re.search(r"^Uid:\s+10001\b", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
    mounts = stack.compose("exec", "-T", "server-1", "cat", "/proc/mounts")
    assert re.search(r"^\S+ / \S+ ro,", mounts, re.MULTILINE)
    page = "/tmp/report.html"
    assert page in stack.compose("exec", "-T", "server-1", "turnout", "report", STORE, "-o", page)

    stack.compose("stop")
    log = stack.compose("logs", "--no-color")
    assert log.count("ended; everything that was acknowledged is stored") == 3
    assert CLIENT not in log
    assert not any(each.decode() in log for each in messages)
