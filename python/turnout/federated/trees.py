"""Trees, the parameters and gradients of a model: nested lists, tuples and dicts of arrays.

A *tree* is an array, or a list, tuple or dictionary with text keys of trees. JAX, Flax and Haiku
call it a pytree of their parameters, and :func:`turnout.federated.torch.state_dict` makes one of a
module in PyTorch; none of these libraries is needed here. Leaves are arrays of float32 or float64.
They come from NumPy or from any library whose arrays lie in the memory of the CPU and have
``__dlpack__`` (PyTorch, JAX, CuPy). Arrays of other libraries are read without a copy.

The leaves of lists and tuples keep their order; those of dictionaries follow the sorted keys.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array, Floats
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: A nested list, tuple or dictionary of arrays.
Tree: TypeAlias = Any

#: What leaves may consist of.
_DTYPES = ("float32", "float64")
_NATIVE = tuple(np.dtype(name) for name in _DTYPES)

#: Trees are no deeper: each step of theirs is two of a document, which has a limit too. One that
#: holds itself is noticed by this.
_DEEPEST = 24


@dataclass(frozen=True)
class _Leaf:
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Structure:
    """The form of a tree without its numbers: the nesting, and the shape and dtype of each leaf.

    Call :func:`flatten` to get one. Structures compare and hash by their content.

    Examples
    --------
    >>> import numpy as np
    >>> leaves, structure = flatten({"weights": np.ones((2, 3)), "bias": np.zeros(3)})
    >>> structure
    Structure(['bias']: float64 (3,), ['weights']: float64 (2, 3))
    >>> structure.total
    9
    >>> Structure.from_dict(structure.to_dict()) == structure
    True
    """

    #: How many numbers all leaves have together.
    total: int

    def __init__(self, root: Tree) -> None:
        #: The tree, with the form of each leaf in its place.
        self._root = root
        self._leaves: list[tuple[str, _Leaf]] = []
        _mapped(root, "", lambda leaf, path: self._leaves.append((path, leaf)))
        self.total = sum(leaf.size for _, leaf in self._leaves)

    @property
    def paths(self) -> tuple[str, ...]:
        """The path to each leaf, such as ``"['conv1'][0]"``; empty for a single array."""
        return tuple(path for path, _ in self._leaves)

    def unflatten(self, leaves: Sequence[Any]) -> Tree:
        """Return a tree of this form with these leaves.

        Parameters
        ----------
        leaves
            One object for each leaf, in order. They are used as they are.

        Returns
        -------
        Tree
            A tree nested like the one that was flattened, with plain dictionaries.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there are more or fewer objects than leaves.
        """
        given = _arguments.items("leaves", leaves, f"a sequence of {len(self._leaves)} leaves")
        if len(given) != len(self._leaves):
            raise InvalidValueError(
                f"leaves must hold one entry for each of the {len(self._leaves)} leaves of the "
                f"tree, got {len(given)}"
            )
        left = iter(given)
        return _mapped(self._root, "", lambda leaf, path: next(left))

    def from_vector(self, values: npt.ArrayLike) -> Tree:
        """Return a tree of this form with the numbers of a vector.

        Parameters
        ----------
        values
            All numbers in order, as :func:`vector` returns them: of shape (:attr:`total`,).

        Returns
        -------
        Tree
            A tree of new arrays with the shapes and dtypes of the leaves.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``values`` has a wrong length or does not hold numbers.

        Examples
        --------
        >>> import numpy as np
        >>> _, structure = flatten((np.zeros(2, np.float32), [np.zeros((1, 1))]))
        >>> structure.from_vector([1.0, 2.0, 3.0])
        (array([1., 2.], dtype=float32), [array([[3.]])])
        """
        array = as_array("values", values)
        if array.shape != (self.total,):
            raise InvalidValueError(
                f"values must have shape ({self.total},), one number for each parameter, got "
                f"{array.shape}"
            )
        leaves, start = [], 0
        for _, leaf in self._leaves:
            piece = array[start : start + leaf.size]
            leaves.append(np.array(piece, dtype=leaf.dtype).reshape(leaf.shape))
            start += leaf.size
        return self.unflatten(leaves)

    def finite(self, values: npt.ArrayLike) -> Tree | None:
        """Return the tree of a vector, or None unless all numbers are finite in their dtypes."""
        with np.errstate(over="ignore"):
            tree = self.from_vector(values)
        return tree if all(np.isfinite(leaf).all() for leaf in flatten(tree)[0]) else None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the structure."""
        return _description(self._root)

    @classmethod
    def from_dict(cls, description: Any) -> Structure:
        """Rebuild a structure from :meth:`to_dict`.

        Parameters
        ----------
        description
            The result of :meth:`to_dict`, possibly after a round trip through JSON.

        Returns
        -------
        Structure
            A structure equal to the one that was described.

        Raises
        ------
        CorruptDataError
            If the description is not that of a structure.
        """
        structure = cls(_described(description))
        if not structure._leaves:
            raise CorruptDataError("not the structure of a tree: it has no leaves")
        return structure

    def __eq__(self, other: object) -> bool:
        """Return whether nesting, shapes and dtypes are equal."""
        return isinstance(other, Structure) and self._root == other._root

    def __hash__(self) -> int:
        return hash(tuple(self._leaves))

    def __repr__(self) -> str:
        """Show the first few leaves."""
        shown = [f"{path}: {leaf.dtype} {leaf.shape}".lstrip(": ") for path, leaf in self._leaves]
        more = f", ... {len(shown)} leaves" if len(shown) > 8 else ""
        return f"Structure({', '.join(shown[:8])}{more})"


def flatten(tree: Tree, name: str = "parameters") -> tuple[list[Array], Structure]:
    """Split a tree into its leaves and its structure.

    Parameters
    ----------
    tree
        A nested list, tuple or dictionary of arrays of float32 or float64.
    name
        The name of the argument in error messages.

    Returns
    -------
    tuple of list and Structure
        The leaves as NumPy arrays, without a copy where possible, and the structure of the tree.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the tree has no leaves, a leaf is not such an array, or a dictionary has a key that is
        not text. The message names the leaf.

    Examples
    --------
    >>> import numpy as np
    >>> leaves, structure = flatten({"b": [np.zeros(2), np.ones((1, 2))], "a": np.ones(1)})
    >>> structure.paths
    ("['a']", "['b'][0]", "['b'][1]")
    >>> structure.unflatten(leaves)["b"][1]
    array([[1., 1.]])
    """
    leaves: list[Array] = []

    def leaf(value: Any, path: str) -> _Leaf:
        array = as_array(path, value)
        leaves.append(array)
        return _Leaf(array.shape, array.dtype.name)

    structure = Structure(_mapped(tree, name, leaf))
    if not leaves:
        raise _arguments.invalid(f"{name} must hold at least one array", _arguments.Private(tree))
    return leaves, structure


def vector(tree: Tree, name: str = "parameters") -> Floats:
    """Return all numbers of a tree as one vector.

    Parameters
    ----------
    tree, name
        As for :func:`flatten`.

    Returns
    -------
    numpy.ndarray
        A new one-dimensional array of float64, which represents float32 numbers exactly.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As for :func:`flatten`.

    Examples
    --------
    >>> import numpy as np
    >>> vector({"weights": np.ones((2, 2)), "bias": np.zeros(1)})
    array([0., 1., 1., 1., 1.])
    """
    leaves, _ = flatten(tree, name)
    return np.concatenate([leaf.ravel().astype(np.float64) for leaf in leaves])


def example_parts(gradients: Tree, structure: Structure) -> list[Array]:
    """Check gradients of single examples and return each leaf as a matrix.

    Parameters
    ----------
    gradients
        Either a tree like the parameters whose leaves have one more axis in front, the examples:
        the result of ``jax.vmap(jax.grad(loss), (None, 0))`` or ``torch.func.vmap``. Lists and
        tuples are interchangeable. Or one array of shape (examples, parameters).
    structure
        The structure of the parameters.

    Returns
    -------
    list of numpy.ndarray
        C-contiguous matrices of float32 or float64, of shape (examples, numbers), one for each
        leaf. A leaf is copied only if it is not contiguous. For one array, one matrix.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the gradients do not fit the structure, or the leaves have different numbers of examples.
        The message names the leaf.

    Examples
    --------
    >>> import numpy as np
    >>> _, structure = flatten({"weights": np.ones((2, 3)), "bias": np.zeros(3)})
    >>> gradients = {"weights": np.ones((10, 2, 3)), "bias": np.zeros((10, 3))}
    >>> [part.shape for part in example_parts(gradients, structure)]
    [(10, 3), (10, 6)]
    >>> [part.shape for part in example_parts(np.ones((10, 9)), structure)]
    [(10, 9)]
    >>> example_parts({"weights": np.ones((10, 2, 3)), "bias": np.zeros(3)}, structure)
    Traceback (most recent call last):
        ...
    turnout.errors.InvalidValueError: gradients['bias'] must have shape (examples, 3), got (3,)
    """
    # Whether it is a mapping takes long to find out.
    if type(gradients) is np.ndarray or not isinstance(gradients, (list, tuple, Mapping)):
        gradients = as_array("gradients", gradients)
        if gradients.ndim == 2 and gradients.shape[1] == structure.total:
            return [np.ascontiguousarray(gradients)]
    expected = {f"gradients{path}": leaf for path, leaf in structure._leaves}
    found: dict[str, Any] = {}
    # A nest may also stand where one array does, whose rows are lists.
    _mapped(gradients, "gradients", lambda value, path: found.update({path: value}), expected)
    for path in sorted(found.keys() ^ expected.keys()):
        place = "an array" if path in expected else "no array"
        raise InvalidValueError(
            f"gradients must be nested as the parameters are, with {place} at {path}, got arrays "
            f"at {_arguments.listed(found)}"
        )
    parts = [_matrix(path, as_array(path, found[path]), leaf) for path, leaf in expected.items()]
    for path, part in zip(expected, parts, strict=True):
        if part.shape[0] != parts[0].shape[0]:
            raise InvalidValueError(
                f"{path} must have as many examples as {next(iter(expected))}, "
                f"{parts[0].shape[0]}, got {part.shape[0]}"
            )
    return parts


def computed_meanwhile(gradients: Tree, depth: int = 0) -> bool:
    """Return whether all arrays of a tree may still be computed in the background, as JAX's are.

    Such arrays never change. Of others, a function may give the same ones again, filled anew.

    Parameters
    ----------
    gradients
        The tree.
    depth
        How deep in a tree it is.

    Returns
    -------
    bool
        Whether :func:`as_array` would wait for them.

    Examples
    --------
    >>> computed_meanwhile({"weights": np.ones((10, 2, 3))})
    False
    """
    if isinstance(gradients, (list, tuple, Mapping)) and depth < _DEEPEST:
        parts = gradients.values() if isinstance(gradients, Mapping) else gradients
        return all(computed_meanwhile(part, depth + 1) for part in parts)
    return hasattr(type(gradients), "is_ready")


def as_array(name: str, value: Any) -> Array:
    """Convert an array of any library to NumPy, without a copy where possible.

    Parameters
    ----------
    name
        The name of the argument in error messages.
    value
        A NumPy array, an array in the memory of the CPU that has ``__dlpack__``, or anything that
        ``numpy.asarray`` takes.

    Returns
    -------
    numpy.ndarray
        An array of float32 or float64. It may share memory with ``value`` and may be read-only.

    Raises
    ------
    InvalidTypeError
        If ``value`` is not an array of float32 or float64, lies in the memory of another device, or
        belongs to a graph of automatic differentiation. The message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> as_array("weights", [1.0, 2.0])
    array([1., 2.])
    >>> as_array("weights", np.ones(2, np.float16))
    Traceback (most recent call last):
        ...
    turnout.errors.InvalidTypeError: weights must hold float32 or float64, got float16
    """
    if type(value) is np.ndarray and value.dtype in _NATIVE:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidTypeError(f"{name} must be an array without a mask, got a masked one")
    array = value if isinstance(value, np.ndarray) else _read(name, value)
    if array.dtype.newbyteorder("=") not in _DTYPES:
        # Of objects the type alone: what a gradient holds is the person's.
        got = type(value).__name__ if array.dtype.hasobject else array.dtype
        raise InvalidTypeError(f"{name} must hold float32 or float64, got {got}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="))


def _read(name: str, value: Any) -> Array:
    """Read an array of another library in place if possible, or else through NumPy."""
    # ``__array__`` takes a tenth of the time of ``__dlpack__``, and does not copy either.
    if hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__"):
        with contextlib.suppress(Exception):
            return np.from_dlpack(value)
    try:
        return np.asarray(value)
    except Exception as error:
        # A dtype that NumPy lacks, a graph of automatic differentiation, another device. Other
        # libraries say in their own error what to do; of plain entries NumPy's shows what they are.
        plain = isinstance(value, (list, tuple, str, bytes, np.generic))
        why = "" if plain else f": {_arguments.shown(error)}"
        cause = None if plain else error
    kind = getattr(value, "dtype", type(value).__name__)
    raise InvalidTypeError(
        f"{name} must be an array of float32 or float64 in the memory of the CPU, got "
        f"{_arguments.shown(kind)}, which NumPy cannot read{why}"
    ) from cause


def _mapped(
    tree: Tree,
    path: str,
    leaf: Callable[[Any, str], Any],
    leaves: Container[str] = (),
    depth: int = 0,
) -> Tree:
    """Apply ``leaf`` to each leaf and its path, in order, and nest the results like the tree.

    Anything at a path of ``leaves`` counts as a leaf.
    """
    if depth > _DEEPEST:
        raise InvalidValueError(
            f"{path[:80]}... must not be nested more than {_DEEPEST} times deep"
        )
    if path in leaves:
        return leaf(tree, path)
    if isinstance(tree, Mapping):
        steps: Sequence[Any] = _keys(tree, path)
    elif hasattr(tree, "_fields") and isinstance(tree, tuple):
        raise InvalidTypeError(
            f"{path} must be a list, tuple, dictionary or array, got a named tuple "
            f"{type(tree).__name__}: pass ._asdict() of it"
        )
    elif isinstance(tree, (list, tuple)):
        steps = range(len(tree))
    else:
        return leaf(tree, path)
    children = [_mapped(tree[step], f"{path}[{step!r}]", leaf, leaves, depth + 1) for step in steps]
    if isinstance(tree, Mapping):
        return dict(zip(steps, children, strict=True))
    return tuple(children) if isinstance(tree, tuple) else children


def _keys(table: Mapping[Any, Any], path: str) -> list[Any]:
    for key in table:
        if not isinstance(key, str):
            raise _arguments.mistyped(f"{path} must have keys that are text", key)
    return sorted(table)


def _matrix(path: str, array: Array, leaf: _Leaf) -> Array:
    if array.ndim == 0 or array.shape[1:] != leaf.shape:
        expected = ", ".join(["examples", *map(str, leaf.shape)])
        comma = "" if leaf.shape else ","
        raise InvalidValueError(f"{path} must have shape ({expected}{comma}), got {array.shape}")
    return np.ascontiguousarray(array.reshape(array.shape[0], leaf.size))


def _description(node: Tree) -> dict[str, Any]:
    if isinstance(node, _Leaf):
        return {"dtype": node.dtype, "shape": list(node.shape)}
    if isinstance(node, dict):
        return {"dict": {key: _description(child) for key, child in node.items()}}
    return {type(node).__name__: [_description(child) for child in node]}


def _described(description: Any, depth: int = 0) -> Tree:
    """Read a description; refuse one that is deeper than a described tree can be."""
    if depth <= _DEEPEST:
        match description:
            case {"dtype": str(dtype), "shape": list(shape), **rest} if (
                not rest
                and dtype in _DTYPES
                and all(type(length) is int and 0 <= length < 2**63 for length in shape)
            ):
                return _Leaf(tuple(shape), dtype)
            case {"dict": dict(table), **rest} if not rest and all(type(k) is str for k in table):
                return {key: _described(table[key], depth + 1) for key in sorted(table)}
            case {"list": list(children), **rest} if not rest:
                return [_described(child, depth + 1) for child in children]
            case {"tuple": list(children), **rest} if not rest:
                return tuple(_described(child, depth + 1) for child in children)
    raise CorruptDataError(f"not the structure of a tree: {_arguments.shown(description)}")
