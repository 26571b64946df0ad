"""What the trainings of the participation paper need: who takes part, the noise, a network."""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
