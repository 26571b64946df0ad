"""How close distributions are to each other, and known ones on which samplers are tried."""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
