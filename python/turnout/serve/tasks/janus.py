"""Write tasks for Janus, in the forms that its programs take in place of our files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from turnout import _core
from turnout.serve.tasks.files import ClientFile, CollectorFile, HelperFile, LeaderFile, TaskFile
from turnout.serve.tasks.helper import SKEW
from turnout.serve.tasks.reading import text_of
from turnout.serve.tasks.task import Noise
from turnout.serve.tasks.vdaf import Vdaf

#: By how much Janus says that one report that is replaced moves sums, of what it adds noise to: the
#: scale of its noise is that over epsilon. Of numbers it is the largest that has as many bits.
NOISED: Final[Mapping[str, Callable[[_core.Prio3], int]]] = {
    "Prio3Histogram": lambda prio3: 2,
    "Prio3SumVec": lambda prio3: prio3.length * (2 ** prio3.max_measurement.bit_length() - 1),
}

#: What all HPKE keys here are, of which Janus has words.
_SUITE: Final = {
    "kem_id": "X25519HkdfSha256",
    "kdf_id": "HkdfSha256",
    "aead_id": "Aes128Gcm",
}
_PUBLIC_KEY_BYTES: Final = 32


def written(file: TaskFile) -> tuple[str, str]:
    """Write the file of a role as Janus reads it.

    Parameters
    ----------
    file
        The file of the role, for a task with Prio3Histogram or Prio3SumVec.

    Returns
    -------
    tuple of str
        The ending of the file's name, and the text, which has secrets unless the role is
        ``"client"``.
    """
    if isinstance(file, (LeaderFile, HelperFile)):
        return "yaml", provisioning(file)
    assert isinstance(file, (ClientFile, CollectorFile))
    return "env", variables(file)


def variables(file: ClientFile | CollectorFile) -> str:
    """Write the file of a client or collector as variables of the environment.

    Those with secrets have the names that Janus's program ``collect`` reads; the others are what
    its options take.
    """
    named = {"TASK_ID": file.task.name, "TASK_CONFIG": text_of(file.task.dap.to_bytes())}
    if isinstance(file, CollectorFile):
        named["HPKE_CONFIG"] = text_of(file.key.config)
        named["HPKE_PRIVATE_KEY"] = text_of(file.key.private_key())
        named["AUTHORIZATION_BEARER_TOKEN"] = file.token
    return "".join(f"{name}={value}\n" for name, value in named.items())


def provisioning(file: LeaderFile | HelperFile) -> str:
    """Write the file of an aggregator as ``janus_cli provision-tasks`` reads it, a list of one.

    The HPKE key of the file is left out: Janus makes its own keys, and clients ask Janus for them.

    Parameters
    ----------
    file
        The file of the leader or the helper, for a task with Prio3Histogram or Prio3SumVec.

    Returns
    -------
    str
        The text, which has secrets.
    """
    task = file.task
    leads = isinstance(file, LeaderFile)
    own, peer = (task.leader, task.helper) if leads else (task.helper, task.leader)
    start, duration = task.interval or ("null", "null")
    members = {
        "task_id": f'"{task.name}"',
        "peer_aggregator_endpoint": f'"{peer}"',
        "own_aggregator_endpoint": f'"{own}"',
        "batch_mode": "TimeInterval",
        "vdaf": {
            "": "!" + task.vdaf.kind,
            **dict(task.vdaf.parameters),
            **_strategy(file.noise, task.vdaf),
        },
        "role": file.role.capitalize(),
        "vdaf_verify_key": f'"{text_of(file.verify_key)}"',
        "task_info": f'"{text_of(task.info)}"',
        "task_start": start,
        "task_duration": duration,
        "report_expiry_age": "null",
        "min_batch_size": task.min_batch_size,
        "time_precision": task.time_precision,
        "tolerable_clock_skew": -(-SKEW // task.time_precision),
        "collector_hpke_config": {
            "id": file.collector_config[0],
            **_SUITE,
            "public_key": f'"{text_of(file.collector_config[-_PUBLIC_KEY_BYTES:])}"',
        },
    }
    if task.batch_mode == "leader_selected":
        members["batch_mode"] = {"": "!LeaderSelected", "batch_time_window_size": "null"}
    if isinstance(file, LeaderFile):
        members["aggregator_auth_token"] = {"type": "Bearer", "token": f'"{file.helper_token}"'}
        members["collector_auth_token_hash"] = _hash(file.collector_token_hash)
    else:
        members["aggregation_mode"] = "Synchronous"
        members["aggregator_auth_token_hash"] = _hash(file.leader_token_hash)
    first, *others = _lines(members)
    return "\n".join([f"- {first}", *(f"  {line}" for line in others)]) + "\n"


def _strategy(noise: Noise | None, vdaf: Vdaf) -> dict[str, Any]:
    """Write the noise as Janus states it: the budget of epsilon whose noise has the same scale."""
    if noise is None:
        return {}
    assert noise.law == "discrete_laplace"
    epsilon = NOISED[vdaf.kind](vdaf.prio3) / Fraction(noise.parameter)
    ratio = [_digits(epsilon.numerator), _digits(epsilon.denominator)]
    return {"dp_strategy": {"dp_strategy": "PureDpDiscreteLaplace", "budget": {"epsilon": ratio}}}


def _digits(number: int) -> list[int]:
    """Write a number as Janus reads large ones: digits of 32 bits, the lowest first."""
    return [number >> shift & 0xFFFFFFFF for shift in range(0, number.bit_length(), 32)]


def _hash(digest: str) -> dict[str, str]:
    return {"type": "Bearer", "hash": f'"{text_of(bytes.fromhex(digest))}"'}


def _lines(members: dict[str, Any]) -> Iterator[str]:
    """Write members as YAML; the tag of an object is its member without a name."""
    for name, value in members.items():
        if isinstance(value, dict):
            tag = value.get("", "")
            yield f"{name}: {tag}".rstrip()
            inner = {each: what for each, what in value.items() if each}
            yield from (f"  {line}" for line in _lines(inner))
        else:
            yield f"{name}: {value}"
