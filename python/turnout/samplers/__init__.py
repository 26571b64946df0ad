"""Private samplers: one realistic record per person.

A person's whole data set is turned into *one draw* from a distribution close to it. The draw is
epsilon-locally differentially private for the whole data set, because the distribution never leaves
a band around a public reference.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
