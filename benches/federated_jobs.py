"""The jobs of federated training that are compared, and who does each of them.

Gradients of examples clipped one by one and added up, in floating point and on the grid; Gaussian
noise; both together, as one step of training; rounds of training. NumPy clips by the plain program,
which makes arrays as large as the gradients, or by a tuned one of two passes (``einsum`` and a
product of BLAS); JAX by a compiled program; Opacus by its optimizer. None of them clips exactly.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs import Job, Layout, Target
from measurement import Contender

EXAMPLES = 1024
PARAMETERS = 100_000
BITS = 24
DRAWS = 10**6

#: A round of training: who takes part on average, with how many elements, and the model.
PARTICIPANTS = 20
SIZE, SAMPLE_RATE = 30, 0.1
ROUND_PARAMETERS = 1000
ROUNDS = 200

PEER = "jax"
OPACUS = "opacus"
REFERENCE = "NumPy"
TUNED = "NumPy, BLAS"
LAYOUT = Layout(
    columns=("turnout", REFERENCE, TUNED, PEER, OPACUS),
    ratios={REFERENCE: "ratio to NumPy", TUNED: "to BLAS", PEER: "to jax", OPACUS: "to Opacus"},
)
NOISE = 1.0
TITLE = "Federated training"
NOTES = [
    f"Clipping: {EXAMPLES:,} examples of {PARAMETERS:,} parameters in single precision; numbers a "
    "second. turnout adds up in double precision, or exactly; the others in single precision.",
    "Noise: turnout's is exact, from a cryptographic generator; the others' is neither.",
    "A step: what clipping and noise cost together. turnout works on the grid, and the others in "
    "floating point. Opacus: pre_step of DPOptimizer, without secure_mode.",
    f"Rounds of training a second: on average {PARTICIPANTS} clients take part with "
    f"{SIZE * SAMPLE_RATE:.0f} of their {SIZE} elements each. The time of their gradients, of "
    f"{ROUND_PARAMETERS:,} numbers, is left out.",
]

Floats = npt.NDArray[Any]


@dataclass(frozen=True)
class Peers:
    """JAX and PyTorch with Opacus, as far as they are to be had."""

    jax: ModuleType | None
    torch: ModuleType | None


def load_peer() -> tuple[Peers, dict[str, str]]:
    """Return JAX and PyTorch, and why one is not to be had; PyTorch only with Opacus."""
    found: dict[str, ModuleType | None] = {PEER: None, OPACUS: None}
    problems = {}
    for name, modules in ((PEER, ("jax",)), (OPACUS, ("opacus.optimizers", "torch"))):
        try:
            found[name] = [importlib.import_module(module) for module in modules][-1]
        except ImportError as error:
            problems[name] = f"not installed: {error}"
    return Peers(found[PEER], found[OPACUS]), problems


def build(turnout: ModuleType | None, peers: Peers) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peers
        The packages beside it.
    """
    core = None
    if turnout is not None:
        core = importlib.import_module(f"{turnout.__name__}._core")
    gradients = np.random.default_rng(0).standard_normal((EXAMPLES, PARAMETERS), np.float32)
    clip = math.sqrt(PARAMETERS)
    return [
        *_clipping(core, peers.jax, gradients, clip),
        _noise(core),
        _step(core, peers, gradients, clip),
        _training(turnout, 20_000, Target(ratio=1.5)),
        _training(turnout, 2_000_000, Target()),
    ]


def _clipping(
    core: ModuleType | None, peer: ModuleType | None, gradients: Floats, clip: float
) -> list[Job]:
    step = clip / 2**BITS
    expected = _numpy(gradients.astype(np.float64), clip)

    def accept(sums: Any) -> bool:
        return bool(np.allclose(np.asarray(sums), expected, rtol=0, atol=0.01))

    size = gradients.size
    others = [
        Contender(REFERENCE, "plain", size, partial(_numpy, gradients, clip), accept),
        Contender(TUNED, "einsum and product", size, partial(_blas, gradients, clip), accept),
    ]
    if peer is not None:
        call = _compiled(peer, gradients, clip)
        others.append(Contender(PEER, "jit(vmap)", size, call, accept))
    real, whole = list(others), list(others)
    if core is not None:
        own: Callable[[], object] = partial(core.clip_and_sum, [gradients], clip)
        real.insert(0, Contender("turnout", "clip_and_sum", size, own, accept))
        own = partial(core.clip_to_grid, [gradients], clip, step)
        whole.insert(
            0, Contender("turnout", "clip_to_grid", size, own, lambda sums: accept(sums * step))
        )
    name = "clip and add up on the grid; others in floating point"
    target = Target(ratio=4, others={TUNED: 1.0, PEER: 1.0})
    nobody = frozenset({OPACUS})
    return [
        Job("clip and add up", real, Target(ratio=4), nobody=nobody),
        Job(name, whole, target, nobody=nobody),
    ]


def _numpy(gradients: Floats, clip: float) -> Floats:
    factors = np.minimum(1, clip / np.linalg.norm(gradients, axis=1))
    sums: Floats = (gradients * factors[:, None]).sum(axis=0)
    return sums


def _blas(gradients: Floats, clip: float) -> Floats:
    norms = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    sums: Floats = np.minimum(1, clip / norms).astype(gradients.dtype) @ gradients
    return sums


def _compiled(jax: ModuleType, gradients: Floats, clip: float) -> Callable[[], object]:
    jnp = importlib.import_module("jax.numpy")

    def clipped(row: Any) -> Any:
        return row * jnp.minimum(1, clip / jnp.linalg.norm(row))

    program = jax.jit(lambda rows: jax.vmap(clipped)(rows).sum(axis=0))
    on_device = jnp.asarray(gradients)
    return lambda: program(on_device).block_until_ready()


def _noise(core: ModuleType | None) -> Job:
    contenders = []
    if core is not None:
        own: Callable[[], object] = partial(core.rounded_gaussian, DRAWS, BITS)
        contenders.append(Contender("turnout", "rounded_gaussian", DRAWS, own, _is_noise))
    call = partial(_numpy_noise, np.random.default_rng())
    contenders.append(Contender(REFERENCE, "standard_normal, rint", DRAWS, call, _is_noise))
    name = f"{DRAWS:,} draws of Gaussian noise on the grid"
    return Job(name, contenders, Target(ratio=1), nobody=frozenset({TUNED, PEER, OPACUS}))


def _numpy_noise(generator: np.random.Generator) -> npt.NDArray[np.int64]:
    draws: npt.NDArray[np.int64]
    draws = np.rint(generator.standard_normal(DRAWS) * 2**BITS).astype(np.int64)
    return draws


def _is_noise(draws: Any) -> bool:
    # The standard deviation of that of a million draws is 0.0007.
    return bool(abs(draws.std() / 2**BITS - 1) < 0.01)


def _step(core: ModuleType | None, peers: Peers, gradients: Floats, clip: float) -> Job:
    """Return the job of what a private step of training adds to that of the gradients."""
    expected, deviation = _numpy(gradients.astype(np.float64), clip), NOISE * clip

    def accept(sums: Any) -> bool:
        # The mean and the deviation of the noise on 100,000 numbers.
        noise = (np.asarray(sums) - expected) / deviation
        return bool(abs(noise.mean()) < 0.02 and abs(noise.std() - 1) < 0.02)

    def noisy(clipped: Callable[[Floats, float], Floats]) -> Callable[[], object]:
        return lambda: clipped(gradients, clip) + generator.normal(0.0, deviation, PARAMETERS)

    size, generator = gradients.size, np.random.default_rng()
    contenders = [
        Contender(REFERENCE, "plain, normal", size, noisy(_numpy), accept),
        Contender(TUNED, "einsum and product, normal", size, noisy(_blas), accept),
    ]
    if core is not None:
        own = partial(_own_step, core, gradients, clip)
        contenders.insert(0, Contender("turnout", "clip_to_grid, noise", size, own, accept))
    if peers.torch is not None:
        call = _opacus_step(peers.torch, gradients, clip)
        contenders.append(Contender(OPACUS, "DPOptimizer.pre_step", size, call, accept))
    return Job("a step: clip, add up and add noise", contenders, nobody=frozenset({PEER}))


def _own_step(core: ModuleType, gradients: Floats, clip: float) -> Floats:
    step = NOISE * clip / 2**BITS
    sums: Floats = core.clip_to_grid([gradients], clip, step)
    return (sums + core.rounded_gaussian(PARAMETERS, BITS)) * step


def _opacus_step(torch: ModuleType, gradients: Floats, clip: float) -> Callable[[], object]:
    optimizers = importlib.import_module("opacus.optimizers")
    parameter = torch.nn.Parameter(torch.zeros(PARAMETERS))
    optimizer = optimizers.DPOptimizer(
        torch.optim.SGD([parameter], 0.1),
        noise_multiplier=NOISE,
        max_grad_norm=clip,
        expected_batch_size=None,
        loss_reduction="sum",
    )
    samples = torch.from_numpy(gradients)

    def call() -> object:
        # Opacus marks a tensor that it has used: each call gets a new one on the same memory.
        parameter.grad_sample, parameter.summed_grad = samples.detach(), None
        optimizer.pre_step()
        return parameter.grad.numpy()

    return call


def _training(turnout: ModuleType | None, clients: int, target: Target) -> Job:
    """Return the job of whole rounds with so many clients."""
    gradients = np.random.default_rng(0).standard_normal((SIZE + 1, ROUND_PARAMETERS), np.float32)
    contenders = []
    if turnout is not None:
        federated = importlib.import_module(f"{turnout.__name__}.federated")
        plan = federated.RandomParticipationSGD(
            PARTICIPANTS / clients, SAMPLE_RATE, 1.0, noise_multiplier=2.5, local_size=SIZE
        )
        engine = federated.InProcessEngine(
            plan,
            np.zeros(ROUND_PARAMETERS, np.float32),
            lambda model, client, elements: gradients[: elements.size],
            SIZE,
            federated.SGD(0.1),
            clients=clients,
        )
        own: Callable[[], object] = lambda: engine.run(engine.server.round + ROUNDS)  # noqa: E731
        contenders.append(Contender("turnout", "InProcessEngine", ROUNDS, own, _is_model))
    call = partial(_numpy_rounds, np.random.default_rng(), gradients, clients)
    contenders.append(Contender(REFERENCE, "masks and normal", ROUNDS, call, _is_model))
    name = f"rounds of training, {clients:,} clients at p = {PARTICIPANTS / clients:g}"
    return Job(name, contenders, target, nobody=frozenset({TUNED, PEER, OPACUS}))


def _numpy_rounds(generator: np.random.Generator, gradients: Floats, clients: int) -> Floats:
    """Train as one would with NumPy: a number for every client, whether it takes part or not."""
    model = np.zeros(ROUND_PARAMETERS)
    for _ in range(ROUNDS):
        total = np.zeros(ROUND_PARAMETERS)
        for _ in np.flatnonzero(generator.random(clients) < PARTICIPANTS / clients):
            elements = np.flatnonzero(generator.random(SIZE) < SAMPLE_RATE)
            total += _numpy(gradients[: elements.size], 1.0)
        total += generator.normal(0.0, 2.5, ROUND_PARAMETERS)
        model -= 0.1 * total / (PARTICIPANTS * SIZE * SAMPLE_RATE)
    return model


def _is_model(model: Any) -> bool:
    return bool(np.isfinite(model).all())
