"""Real data: readers of published files, and downloads into the user's cache.

:func:`fetch_mnist`, :func:`fetch_emnist` and :func:`fetch_adult` download from the publishers and
check what arrives against published hashes.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
