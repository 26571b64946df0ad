"""Private statistics when only some people take part.

>>> import turnout as tn
>>> domain = tn.Domain(["never", "once", "often"])
>>> oracle = tn.DirectEncoding(epsilon=1.0, domain=domain)
>>> answers = ["never"] * 6000 + ["once"] * 3000 + ["often"] * 1000
>>> tally = oracle.collect(answers, participation=tn.Bernoulli(0.5), seed=7)
>>> estimate = tally.estimate()
>>> estimate.interval(0.99).contains([0.6, 0.3, 0.1])
array([ True,  True,  True])

``tn.choose_oracle`` chooses an oracle. ``tn.plan`` computes how many nodes must report for a given
accuracy. :mod:`turnout.accounting` computes the privacy that participation and shuffling give.
:mod:`turnout.federated` trains models with clients that take part at random.
"""

import logging

from turnout._public import named_in_stub

# Whoever runs the program says what is shown of the log; without that nothing is.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
