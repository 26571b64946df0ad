"""The algorithm: a plan, and the halves of client and server that it makes."""

from __future__ import annotations

import os
from typing import Any

from turnout.accounting import PrivacyLedger
from turnout.federated.client import Client
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import TrainingPlan
from turnout.federated.server import Server


class RandomParticipationSGD(TrainingPlan):
    """Private stochastic gradient descent in which clients and their elements take part at random.

    In every round each available client takes part with probability ``client_rate``, decided by
    itself; one that does samples each of its elements with probability ``sample_rate``, clips the
    gradient of each and sends their sum. Gaussian noise is added, and the total is scaled by public
    constants only. An object of this class holds the public parameters; :meth:`client` and
    :meth:`server` make the two halves, and :class:`~turnout.federated.InProcessEngine` runs both in
    one process.

    The guarantee is for one element of one client (add or remove), against everybody who sees the
    models; see ``mode`` for what the server may see.

    Parameters
    ----------
    client_rate
        The probability p that an available client takes part, in (0, 1].
    sample_rate
        The probability q that an element of such a client is sampled, in (0, 1].
    clip
        The L2 norm that the gradient of each example is clipped to, finite and above 0; infinity is
        taken where there is no noise.
    noise_multiplier
        The standard deviation of the noise over ``clip``. Either this or a target must be given.
    epsilon, delta, rounds
        The target for the whole training: the least noise that reaches it over this many rounds is
        used, and halves get ledgers with this budget.
    local_size
        A public number d that no client has more elements than. Without one the accounting is weak
        client sampling, which needs none. The accounting takes it for its ``local_size``, which
        counts the elements beside the protected one: by one on the safe side.
    nominal_local_size
        The public number that the sum is scaled by in place of the clients' true sizes;
        ``local_size`` if None. It has no influence on privacy.
    mode
        Who is trusted. ``"trusted_server"``: the server sees the sums of those who take part and
        adds the noise once. ``"always_send"``: the server is not trusted, and every available
        client sends its sum with noise of its own, or noise alone if it does not take part.
        ``"participants_only"``: the server is not trusted and only those who take part send, with
        noise of their own; it sees who does, so that the accounting is weak client sampling.
    noise
        ``"exact"``: see :class:`~turnout.federated.Grid`. ``"float"``: NumPy's generator in
        floating point, whose low bits may tell what the noise should hide (Mironov 2012).
        ``"none"``: no noise and no privacy, for comparisons.
    grid_bits
        The standard deviation of exact noise is 2^grid_bits steps, from 8 to 36.
    batch_slack
        By how much one element may change the sum beside its own clipped gradient, in units of the
        clip, because the gradients of others come out in other bits in another batch. The
        accounting is then for ``1 + batch_slack`` times the clip. 0 where gradients do not depend
        on the batch: see :func:`~turnout.federated.one_at_a_time` and
        :doc:`/topics/federated`.
    seed
        For studies only: makes every draw the same on every run, in every engine, and anybody who
        knows it can take the noise away.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or arguments do not fit together.

    Notes
    -----
    Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated Learning",
    Algorithm 1 and section 5.5; their Theorem 4.1 is no upper bound, and the sound one of
    :class:`turnout.accounting.RandomParticipation` is used. Whether a client is available must not
    depend on its data. Availability is not part of the accounting: a client pays for every round
    in which it draws, and for no other.

    Examples
    --------
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.001, 0.1, clip=1.0, noise_multiplier=2.4903, local_size=30
    ... )
    >>> plan.mechanism.delta(0.015) <= 1e-6
    True
    >>> round(plan.scale(available=20_000), 4)
    0.0167
    """

    def client(
        self,
        size: int,
        *,
        parameters: Any,
        index: int = 0,
        ledger: PrivacyLedger | None = None,
    ) -> Client:
        """Make the half of one client.

        Parameters
        ----------
        size
            How many elements it has, from 0 to ``local_size``.
        parameters
            The model: a nest of arrays of its parameters, or how many there are.
        index
            Its number among the clients; matters in seeded studies only.
        ledger
            Its own ledger; one with the plan's target if None, or none if there is no target.

        Returns
        -------
        Client
            The half; see :class:`turnout.federated.Client`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or there is a ledger and no noise.
        """
        return Client(self, size, parameters=parameters, index=index, ledger=ledger)

    def server(
        self,
        parameters: Any,
        optimizer: Optimizer,
        *,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> Server:
        """Make the half of the server.

        Parameters
        ----------
        parameters
            The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
        optimizer
            What makes a step of a gradient, such as :class:`~turnout.federated.SGD`.
        ledger
            The ledger of the whole training; one with the plan's target if None, or none if there
            is no target.
        checkpoint
            A file that the state is written to, see :meth:`turnout.federated.Server.resume`.
        checkpoint_every
            After how many rounds it is written.

        Returns
        -------
        Server
            The half; see :class:`turnout.federated.Server`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or there is a ledger and no noise.
        """
        return Server(
            self,
            parameters,
            optimizer,
            ledger=ledger,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
