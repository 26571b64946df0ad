"""Tallies of joint answers."""

from __future__ import annotations

from turnout.frequency.joint.estimate import JointEstimate
from turnout.frequency.tally import Tally


class JointTally(Tally):
    """How many reports support each combination of answers: see :class:`turnout.Tally`."""

    __slots__ = ()

    def estimate(self, method: str = "hajek") -> JointEstimate:
        """Estimate the shares of all combinations.

        Parameters
        ----------
        method
            As in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        JointEstimate
            Joint shares, from which those of each question and conditional ones are made.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If the method does not apply to this participation or to an empty tally.

        Examples
        --------
        >>> import turnout as tn
        >>> joint = tn.JointTable(1.0, {"a": 2, "b": 3})
        >>> joint.simulate([300, 200, 100, 100, 200, 300], seed=1).estimate().table.shape
        (2, 3)
        """
        return JointEstimate.from_tally(self, method)
