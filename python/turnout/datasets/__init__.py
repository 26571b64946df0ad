"""Real data: readers of published files, and downloads into the user's cache.

Reading needs nothing but NumPy. :func:`fetch_mnist`, :func:`fetch_emnist` and :func:`fetch_adult`
download from the publishers and check what arrives against published hashes; they need the extra
``datasets``.
"""

from turnout._public import listing
from turnout.datasets.adult import TableSplit, fetch_adult, load_adult
from turnout.datasets.images import (
    Images,
    ImageSplit,
    fetch_emnist,
    fetch_mnist,
    load_images,
    load_mnist,
    read_idx,
)

__all__ = [
    "ImageSplit",
    "Images",
    "TableSplit",
    "fetch_adult",
    "fetch_emnist",
    "fetch_mnist",
    "load_adult",
    "load_images",
    "load_mnist",
    "read_idx",
]

__dir__ = listing(__all__)
