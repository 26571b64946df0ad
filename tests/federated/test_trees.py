"""Trees of arrays are taken apart and put together, and gradients must fit the parameters."""

from __future__ import annotations

import collections
import json
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.federated.trees import Structure, as_array, example_parts, flatten, vector

SINGLE, DOUBLE = np.float32, np.float64


class Exchanged:
    """An array of which only its DLPack face is known, as a tensor of another library."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Tensor(Exchanged):
    """A tensor that belongs to a graph, as a parameter of PyTorch."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient")

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("Can't call numpy(): use tensor.detach().numpy() instead.")


class Elsewhere(Exchanged):
    """A tensor in the memory of a GPU, as one of PyTorch."""

    def __init__(self, array: Any) -> None:
        super().__init__(array, device=2)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("The array is on another device")

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("can't convert to numpy: use Tensor.cpu() first")


def model() -> dict[str, Any]:
    return {
        "dense": (np.arange(6, dtype=SINGLE).reshape(2, 3), np.full(3, 7.0)),
        "conv1": [np.array([[8.0]]), {"scale": np.array(9.0, SINGLE)}, ()],
    }


def test_leaves_come_in_the_order_of_sorted_keys() -> None:
    leaves, structure = flatten(model())
    assert structure.paths == (
        "['conv1'][0]",
        "['conv1'][1]['scale']",
        "['dense'][0]",
        "['dense'][1]",
    )
    assert structure.total == 11
    assert [leaf.shape for leaf in leaves] == [(1, 1), (), (2, 3), (3,)]
    assert [leaf.dtype for leaf in leaves] == [DOUBLE, SINGLE, SINGLE, DOUBLE]
    assert vector(model()).tolist() == [8, 9, 0, 1, 2, 3, 4, 5, 7, 7, 7]
    assert vector(model()).dtype == DOUBLE


def test_leaves_are_not_copied_and_vectors_are() -> None:
    array = np.ones(3)
    (leaf,), _ = flatten([array])
    assert np.shares_memory(leaf, array)
    assert not np.shares_memory(vector([array]), array)
    assert not np.shares_memory(flatten([array])[1].from_vector(array)[0], array)


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return (
            type(second) is dict
            and list(first) == list(second)
            and all(equal(first[key], second[key]) for key in first)
        )
    if isinstance(first, (list, tuple)):
        return (
            type(second) is type(first)
            and len(first) == len(second)
            and all(map(equal, first, second))
        )
    return (
        first.dtype == second.dtype
        and first.shape == second.shape
        and first.tobytes() == second.tobytes()
    )


def test_trees_come_back_from_their_leaves_and_from_their_vector() -> None:
    leaves, structure = flatten(model())
    ordered = {key: model()[key] for key in ("conv1", "dense")}
    assert equal(structure.unflatten(leaves), ordered)
    assert equal(structure.from_vector(vector(model())), ordered)
    assert structure.unflatten(["a", "b", "c", "d"])["dense"] == ("c", "d")


def test_the_order_of_keys_does_not_matter_and_kinds_of_nesting_do() -> None:
    one, two = np.ones(1), np.ones(2)
    assert flatten({"b": two, "a": one})[1] == flatten({"a": one, "b": two})[1]
    assert hash(flatten({"b": two, "a": one})[1]) == hash(flatten({"a": one, "b": two})[1])
    others = [
        [one, two],
        (one, two),
        {"a": two, "b": one},
        {"a": one, "c": two},
        {"a": one, "b": two.astype(SINGLE)},
        {"a": one, "b": two, "c": ()},
    ]
    seen = [flatten(tree)[1] for tree in (*others, {"a": one, "b": two})]
    assert len(set(seen)) == len(seen)
    assert all(seen[i] != seen[j] for i in range(len(seen)) for j in range(i))
    assert flatten([one])[1] != {"list": []}
    assert flatten(MappingProxyType({"a": one}))[1] == flatten({"a": one})[1]


def test_jax_orders_leaves_in_the_same_way() -> None:
    jax = pytest.importorskip("jax")
    tree = jax.tree.map(jax.numpy.asarray, jax.tree.map(SINGLE, model()))
    leaves, structure = flatten(tree)
    theirs, definition = jax.tree.flatten(tree)
    assert [np.asarray(leaf).tobytes() for leaf in theirs] == [leaf.tobytes() for leaf in leaves]
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    assert paths == list(structure.paths)
    again = jax.tree.flatten(structure.unflatten(leaves))[1]
    assert again == definition
    raveled = jax.numpy.concatenate([leaf.ravel() for leaf in theirs])
    assert np.asarray(raveled).tolist() == vector(tree).tolist()


def test_gradients_of_jax_fit_its_parameters_without_a_copy() -> None:
    jax = pytest.importorskip("jax")
    parameters = {"w": jax.numpy.ones((2, 3)), "b": jax.numpy.zeros(3)}

    def loss(parameters: Any, x: Any) -> Any:
        return ((x @ parameters["w"] + parameters["b"]) ** 2).sum()

    examples = jax.numpy.arange(10.0).reshape(5, 2)
    gradients = jax.vmap(jax.grad(loss), (None, 0))(parameters, examples)
    _, structure = flatten(parameters)
    bias, weights = example_parts(gradients, structure)
    # The gradient of |x w + b|^2, written out.
    x = np.asarray(examples, DOUBLE)
    residual = 2 * (x @ np.ones((2, 3)))
    np.testing.assert_allclose(bias, residual, rtol=1e-6)
    np.testing.assert_allclose(
        weights, (x[:, :, None] * residual[:, None, :]).reshape(5, 6), rtol=1e-6
    )
    assert weights.__array_interface__["data"][0] == gradients["w"].unsafe_buffer_pointer()


def test_half_precision_and_tracers_of_jax_are_refused() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(InvalidTypeError, match=r"w must hold float32 or float64, got bfloat16"):
        as_array("w", jax.numpy.ones(2, jax.numpy.bfloat16))

    def traced(x: Any) -> Any:
        as_array("w", x)
        return x

    with pytest.raises(InvalidTypeError, match=r"w must be an array of float32 or float64.*Tracer"):
        jax.jit(traced)(jax.numpy.ones(2))


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_arrays_of_other_libraries_are_read_in_place(dtype: Any) -> None:
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    read = as_array("w", Exchanged(array))
    assert np.shares_memory(read, array)
    assert read.dtype == dtype
    assert np.shares_memory(as_array("w", array), array)
    tree = {"w": Exchanged(array)}
    assert vector(tree).tolist() == [0, 1, 2, 3, 4, 5]
    (part,) = example_parts({"w": Exchanged(array[None].repeat(4, 0))}, flatten(tree)[1])
    assert part.shape == (4, 6)


class Unreadable(Exchanged):
    """An array of a dtype that DLPack has and NumPy has not."""

    dtype = "torch.bfloat16"

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Unsupported dtype")

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Tensor(np.ones(2)), r"which NumPy cannot read: .*use tensor\.detach\(\)"),
        (Elsewhere(np.ones(2)), r"in the memory of the CPU.* cannot read: .*use Tensor\.cpu\(\)"),
        (Unreadable(np.ones(2)), r"got 'torch\.bfloat16', which NumPy cannot read.*BFloat16"),
        (Exchanged(np.ones(2, np.int32)), "w must hold float32 or float64, got int32"),
        (np.ones(2, np.float16), "w must hold float32 or float64, got float16"),
        (np.ones(2, np.longdouble), "w must hold float32 or float64, got"),
        (np.ones(2, complex), "got complex128"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "without a mask"),
        ([1, 2], "got int64"),
        ([[1.0], [1.0, 2.0]], "which NumPy cannot read"),
        ("text", "w must hold float32 or float64"),
        (None, "w must hold float32 or float64, got NoneType$"),
        ({"a": np.ones(2)}, "w must hold float32 or float64, got dict$"),
    ],
)
def test_what_is_no_array_of_floats_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        as_array("w", value)


def test_arrays_of_the_other_byte_order_become_native() -> None:
    array = as_array("w", np.array([1.5, -2.0], ">f4"))
    assert array.dtype == SINGLE
    assert array.dtype.isnative
    assert array.tolist() == [1.5, -2.0]


def cyclic() -> list[Any]:
    tree: list[Any] = []
    tree.append(tree)
    return tree


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ([], InvalidValueError, "parameters must hold at least one array"),
        ({"a": ((), {})}, InvalidValueError, "parameters must hold at least one array"),
        ({"a": [np.ones(1), 2]}, InvalidTypeError, r"parameters\['a'\]\[1\] must hold float32"),
        ({1: np.ones(1)}, InvalidTypeError, "parameters must have keys that are text, got 1"),
        ({"a": {None: 1}}, InvalidTypeError, r"parameters\['a'\] must have keys"),
        (cyclic(), InvalidValueError, "nested more than 24 times"),
        (
            [collections.namedtuple("State", "mean")(np.ones(1))],
            InvalidTypeError,
            r"parameters\[0\] must be .* named tuple State",
        ),
    ],
)
def test_what_is_no_tree_is_refused(tree: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        flatten(tree)


def test_a_lone_array_is_a_tree() -> None:
    array = np.ones((2, 2))
    leaves, structure = flatten(array)
    assert structure.paths == ("",)
    assert structure.unflatten(leaves) is leaves[0]
    assert [part.shape for part in example_parts(np.ones((5, 2, 2)), structure)] == [(5, 4)]
    assert [part.shape for part in example_parts(np.ones((5, 4)), structure)] == [(5, 4)]
    assert [part.shape for part in example_parts([[1.0, 2.0, 3.0, 4.0]], flatten(np.ones(4))[1])]
    assert repr(structure) == "Structure(float64 (2, 2))"


@pytest.mark.parametrize("leaves", [[], [1] * 3, [1] * 5])
def test_a_wrong_number_of_leaves_is_refused(leaves: list[int]) -> None:
    with pytest.raises(InvalidValueError, match="one entry for each of the 4 leaves"):
        flatten(model())[1].unflatten(leaves)


@pytest.mark.parametrize("shape", [(10,), (12,), (11, 1), (1, 11), ()])
def test_a_vector_of_another_length_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValueError, match=r"values must have shape \(11,\)"):
        flatten(model())[1].from_vector(np.zeros(shape))


def test_structures_survive_json() -> None:
    _, structure = flatten(model())
    text = json.dumps(structure.to_dict(), sort_keys=True)
    assert Structure.from_dict(json.loads(text)) == structure
    assert repr(structure).startswith("Structure(['conv1'][0]: float64 (1, 1), ")


LEAF: dict[str, Any] = {"dtype": "float32", "shape": [2]}


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        "float32",
        {"list": []},
        {"list": [{}]},
        {"list": {"a": LEAF}},
        {"dict": [LEAF]},
        {"dict": {1: LEAF}},
        {"set": [LEAF]},
        {"list": [LEAF], "tuple": [LEAF]},
        {**LEAF, "more": 1},
        {"dtype": "float32"},
        {"shape": [2]},
        {**LEAF, "dtype": "int32"},
        {**LEAF, "dtype": None},
        {**LEAF, "shape": [-1]},
        {**LEAF, "shape": [True]},
        {**LEAF, "shape": [2.0]},
        {**LEAF, "shape": [2**63]},
        {**LEAF, "shape": 2},
    ],
)
def test_what_describes_no_structure_is_refused(description: Any) -> None:
    with pytest.raises(CorruptDataError, match="not the structure of a tree"):
        Structure.from_dict(description)


def test_a_description_that_is_too_deep_is_refused() -> None:
    description = LEAF
    for _ in range(5000):
        description = {"list": [description]}
    with pytest.raises(CorruptDataError):
        Structure.from_dict(description)


def gradients(examples: int = 4) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    return {
        "dense": (
            generator.normal(size=(examples, 2, 3)).astype(SINGLE),
            generator.normal(size=(examples, 3)),
        ),
        "conv1": [
            generator.normal(size=(examples, 1, 1)),
            {"scale": generator.normal(size=examples).astype(SINGLE)},
            (),
        ],
    }


@pytest.mark.parametrize("examples", [0, 1, 4])
def test_gradients_become_one_matrix_a_leaf(examples: int) -> None:
    given = gradients(examples)
    leaves, structure = flatten(model())
    parts = example_parts(given, structure)
    assert [part.shape for part in parts] == [(examples, leaf.size) for leaf in leaves]
    assert [part.dtype for part in parts] == [leaf.dtype for leaf in leaves]
    assert all(part.flags.c_contiguous for part in parts)
    for row in range(examples):
        single = [
            given["conv1"][0][row],
            given["conv1"][1]["scale"][row],
            given["dense"][0][row],
            given["dense"][1][row],
        ]
        expected = np.concatenate([np.ravel(leaf) for leaf in single])
        assert np.concatenate([part[row] for part in parts]).tolist() == expected.tolist()


def test_lists_and_tuples_of_gradients_may_stand_for_each_other() -> None:
    given = gradients()
    given["dense"] = list(given["dense"])
    given["conv1"] = tuple(given["conv1"])
    _, structure = flatten(model())
    found = example_parts(given, structure)
    assert all(map(np.array_equal, found, example_parts(gradients(), structure)))


def test_one_matrix_is_taken_for_any_structure_and_copied_only_if_scattered() -> None:
    _, structure = flatten(model())
    matrix = np.arange(44.0).reshape(4, 11)
    (part,) = example_parts(matrix, structure)
    assert np.shares_memory(part, matrix)
    (part,) = example_parts(np.asfortranarray(matrix), structure)
    assert part.flags.c_contiguous
    assert np.array_equal(part, matrix)
    (part,) = example_parts(Exchanged(matrix), structure)
    assert np.shares_memory(part, matrix)


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {"dense": list(gradients()["dense"]), "conv1": gradients()["conv1"]}
    place: Any = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return tree


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            changed(["conv1", 0], np.ones((4, 1))),
            InvalidValueError,
            r"gradients\['conv1'\]\[0\] must have shape \(examples, 1, 1\), got \(4, 1\)",
        ),
        (
            changed(["conv1", 1, "scale"], np.array(1.0)),
            InvalidValueError,
            r"gradients\['conv1'\]\[1\]\['scale'\] must have shape \(examples,\), got \(\)",
        ),
        (
            changed(["dense", 1], np.ones((3, 3))),
            InvalidValueError,
            r"gradients\['dense'\]\[1\] must have as many examples as gradients\['conv1'\]\[0\], "
            "4, got 3",
        ),
        (
            changed(["dense", 0], np.ones((4, 2, 3), np.int64)),
            InvalidTypeError,
            r"gradients\['dense'\]\[0\] must hold float32 or float64, got int64",
        ),
        (
            changed(["dense"], [np.ones((4, 2, 3))]),
            InvalidValueError,
            r"with an array at gradients\['dense'\]\[1\], got arrays at .*\['dense'\]\[0\]\"$",
        ),
        (
            changed(["conv1", 1], {"scale": np.ones(4), "shift": np.ones(4)}),
            InvalidValueError,
            r"with no array at gradients\['conv1'\]\[1\]\['shift'\], got arrays at ",
        ),
        (
            changed(["conv1", 1], {1: np.ones(4), "a": 2}),
            InvalidTypeError,
            r"\['conv1'\]\[1\] must have keys that are text",
        ),
        (
            changed(["conv1"], {"a": 2}),
            InvalidValueError,
            r"with no array at gradients\['conv1'\]\['a'\], got arrays at ",
        ),
        (np.ones((4, 10)), InvalidValueError, "with no array at gradients, got arrays at"),
        (np.ones(11), InvalidValueError, "with no array at gradients, got arrays at"),
        (None, InvalidTypeError, "gradients must hold float32"),
        (np.ones((4, 11), np.float16), InvalidTypeError, "gradients must hold float32"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(
    given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        example_parts(given, flatten(model())[1])
