"""The files of ``examples/serve`` name what there is."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).parents[2] / "examples" / "serve"
USAGE = Path(__file__).parents[2] / "python" / "turnout" / "cli" / "usage.txt"


def options() -> set[str]:
    """The options of ``turnout serve``."""
    (line,) = (
        line
        for line in USAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("turnout.cli.serve.serve\t")
    )
    return set(re.findall(r"--[a-z-]+", line))


def test_the_unit_and_the_containers_run_the_command_as_it_is() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(EXAMPLES / "turnout.service", encoding="utf-8")
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[:2] == ["/opt/turnout/bin/turnout", "serve"]
    image = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", image, re.M):
        words += json.loads(line)
    services = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))["services"]
    words += services["server"]["command"]
    found = {word for word in words if word.startswith("--")}
    assert {"--store", "--host", "--port"} <= found <= options()
    assert services["server"]["deploy"]["replicas"] == 2


def test_the_server_is_measured_beside_a_bare_handler(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "benches" / "serving.py"
    target = tmp_path / "serving.json"
    command = [sys.executable, str(program), "--quick", "--json", str(target)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    rows = json.loads(target.read_text(encoding="utf-8"))
    assert [row["batch"] for row in rows] == [100, 1]
    assert all(row["turnout"] > 0 and row["ratio"] > 0 for row in rows)
