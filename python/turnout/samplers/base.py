"""Define what all samplers share: parameters, fitting, and draws that a budget pays for."""

from __future__ import annotations

import abc
import copy
import inspect
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._rounding import logarithm_up
from turnout._types import Array, Floats, Self
from turnout.errors import InvalidValueError, NotFittedError
from turnout.samplers._arguments import (
    column_names,
    copy_of,
    points,
    training_points,
)
from turnout.samplers.budget import PrivacyBudget

#: Words of 64 bits realise likelihood ratios up to this epsilon.
LARGEST_EPSILON = 42.0


class PrivateSampler(abc.ABC):
    """A sampler that is fitted on one person's data and returns private draws.

    It follows scikit-learn's conventions without needing scikit-learn: the constructor stores its
    arguments and nothing else, ``fit`` checks them and sets attributes that end in an underscore,
    ``get_params``, ``set_params`` and :func:`sklearn.base.clone` work.

    The *fitted object* knows the person's data: never hand it over. Only what ``sample`` returns is
    private. ``score_samples`` is for the person, for tests and for studies.
    """

    #: Whether ``random_state`` seeds noise that protects, and not a training alone.
    _seeds_noise: ClassVar[bool] = False

    epsilon: float
    #: What a draw of this fit costs, whatever the parameter is now.
    _epsilon_: float
    #: What is left for draws of this fit where no other budget is given: one draw.
    budget_: PrivacyBudget
    #: The budget that was given for draws of this fit, behind the fit's own.
    _payer: tuple[PrivacyBudget | None, PrivacyBudget | None] = (None, None)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        signature = inspect.signature(cls.__init__)
        return sorted(name for name in signature.parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name.

        Parameters
        ----------
        deep
            Whether to list the parameters of nested estimators too, as ``name__parameter``.

        Returns
        -------
        dict
            The values by name.
        """
        result: dict[str, Any] = {}
        for name in self._parameter_names():
            value = getattr(self, name)
            result[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                inner = value.get_params()
                result.update({f"{name}__{key}": entry for key, entry in inner.items()})
        return result

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name; ``name__parameter`` changes one of a nested estimator.

        Returns
        -------
        PrivateSampler
            The sampler itself.

        Raises
        ------
        InvalidValueError
            If there is no parameter of that name.
        """
        known = self._parameter_names()
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in known:
                raise InvalidValueError(
                    f"{type(self).__name__} has no parameter {name!r}: expected one of "
                    f"{', '.join(known)}"
                )
            if inner:
                target = getattr(self, outer)
                if not hasattr(target, "set_params"):
                    raise _arguments.invalid(
                        f"{outer} must be an estimator for {name!r} to be set", target
                    )
                target.set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__)
        changed = [
            f"{name}={_arguments.shown(getattr(self, name))}"
            for name, parameter in signature.parameters.items()
            if name == "epsilon"
            or (name != "self" and not _same(getattr(self, name), parameter.default))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_clone__(self) -> Self:
        """Copy the parameters without the fit; a reference keeps its own fit."""
        parameters = self.get_params(deep=False)
        return type(self)(
            **{
                name: copy.deepcopy(value) if name == "reference" else copy_of(value)
                for name, value in parameters.items()
            }
        )

    def __sklearn_tags__(self) -> Any:
        utils = require("sklearn.utils", "samplers")
        return utils.Tags(
            estimator_type="density_estimator",
            target_tags=utils.TargetTags(required=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=utils.InputTags(),
            non_deterministic=True,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "budget_")

    def sample(
        self, n_samples: int = 1, *, budget: PrivacyBudget | None = None, seed: int | None = None
    ) -> Array:
        """Draw private records; each costs epsilon.

        Parameters
        ----------
        n_samples
            How many records to draw. m draws from one person's data cost m times epsilon.
        budget
            The budget that pays for these draws, and for later draws of this fit that name no
            budget. Until you give one, the fit's own ``budget_`` allows a single draw. A copy of
            the fitted sampler has its own copy of the budget.
        seed
            For tests and simulations only: anyone who knows the seed can undo the protection.

        Returns
        -------
        numpy.ndarray
            The draws, one per row.

        Raises
        ------
        BudgetExceededError
            If the draws cost more than is left. Nothing is drawn or spent then.
        NotFittedError
            If the sampler is not fitted.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        self._check_fitted()
        count = _arguments.integer("n_samples", n_samples, least=1)
        checked = _arguments.seed(seed)
        # The grant stands for the fit: another fit has another one.
        grant, payer = self._payer
        purse = payer if grant is self.budget_ and payer is not None else self.budget_
        if budget is not None:
            expected = "a PrivacyBudget"
            purse = _arguments.instance("budget", budget, PrivacyBudget, expected)
            if purse.unit != self.budget_.unit:
                raise InvalidValueError(
                    f"budget must be of the unit of the draws, {self.budget_.unit!r}, got "
                    f"{purse.unit!r}: their epsilons do not add up"
                )
        self._pay(purse, count)
        if budget is not None:
            self._payer = (self.budget_, budget)
        return self._draw(count, checked)

    def score(self, X: Any, y: None = None) -> float:
        """Return the mean of :meth:`score_samples`, the mean log-likelihood of a record.

        Parameters
        ----------
        X
            Records.
        y
            Not used; scikit-learn's convention.

        Returns
        -------
        float
            The mean log-density, in nats.
        """
        return float(np.mean(self.score_samples(X)))

    def fit(self, X: Any, y: None = None) -> Self:
        """Fit the sampler on one person's data.

        Parameters
        ----------
        X
            The person's records: real numbers of shape (n_records, n_features). For a sampler of
            finitely many values, the person's values: at least one, and anything that
            :meth:`turnout.Domain.encode` takes.
        y
            Not used; scikit-learn's convention.

        Returns
        -------
        PrivateSampler
            The sampler itself. Each fit allows one new draw: a draw from a second fit on the same
            data is a second release.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If a value is not in the domain.
        InvalidTypeError, InvalidValueError
            If a parameter or the data cannot be used.
        MissingExtraError
            If scikit-learn is needed and not installed.
        """
        epsilon = self._check_epsilon()
        data = self._read(X)
        # A failed fit leaves no half-fitted sampler behind.
        vars(self).pop("budget_", None)
        self._epsilon_ = epsilon
        self._learn(data)
        self.budget_ = self._grant()
        return self

    @abc.abstractmethod
    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of one draw, in nats."""

    def guarantee(self) -> str:
        """Describe in two sentences what a draw of this fit protects and what several draws cost.

        Returns
        -------
        str
            The sentences.

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        """
        self._check_fitted()
        return (
            f"One draw is {self._epsilon_!r}-locally differentially private for the person's whole "
            "data set: no draw is more than e^epsilon times as likely under one data set as under "
            f"another. m draws cost m times {self._epsilon_!r}."
        )

    @abc.abstractmethod
    def _read(self, X: Any) -> Any:
        """Check the data to fit on, and change nothing."""

    @abc.abstractmethod
    def _learn(self, data: Any) -> None:
        """Fit on the checked data."""

    @abc.abstractmethod
    def _draw(self, count: int, seed: int | None) -> Array:
        """Make draws that are already paid for."""

    def _grant(self) -> PrivacyBudget:
        return PrivacyBudget(self._epsilon_)

    def _pay(self, purse: PrivacyBudget, count: int) -> None:
        purse.spend(self._epsilon_, times=count)

    @property
    def _of_points(self) -> bool:
        """Whether the fitted sampler draws points, not one of finitely many values."""
        return hasattr(self, "n_features_in_")

    def _check_fitted(self) -> None:
        """Raise an error unless the sampler is fitted.

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        """
        if not self.__sklearn_is_fitted__():
            # sklearn.exceptions.NotFittedError is also a ValueError and an AttributeError.
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit with one person's data"
            )

    def _check_epsilon(self) -> float:
        """Check the parameter ``epsilon``, and return it as a float.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is not a number, or out of range.
        """
        return usable_epsilon(self.epsilon)


class RatioSampler(PrivateSampler):
    """A sampler whose draws have an exactly known likelihood ratio.

    ``fit`` stores the ratio of the fitted sampler as ``_fitted_ratio``.
    """

    _fitted_ratio: Fraction

    @abc.abstractmethod
    def _ratio(self) -> Fraction:
        """Return the ratio under the current parameters."""

    @property
    def realized_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a draw under two data sets; at most e^eps.

        It is exact; for points, it holds given the proposals. For a fitted sampler it is the ratio
        of the fit's own draws, whatever the parameters are now.
        """
        return self._fitted_ratio if self.__sklearn_is_fitted__() else self._ratio()

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above epsilon."""
        return logarithm_up(self.realized_ratio)


class PointSampler(PrivateSampler):
    """A sampler of records that are points: rows of real numbers."""

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def _read(self, X: Any) -> tuple[Floats, npt.NDArray[np.object_] | None]:
        return training_points(X), column_names(X)

    def _learn(self, data: tuple[Floats, npt.NDArray[np.object_] | None]) -> None:
        records, names = data
        self.n_features_in_ = records.shape[1]
        # As in scikit-learn: there if the records had names of columns, and only then.
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self._fit(records)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of one draw at given points.

        Parameters
        ----------
        X
            Points of shape (n_points, n_features).

        Returns
        -------
        numpy.ndarray
            Natural logarithms, float64 of shape (n_points,).

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        InvalidTypeError, InvalidValueError
            If the points cannot be used.
        """
        self._check_fitted()
        records = points("X", X)
        if records.shape[1] != self.n_features_in_:
            raise InvalidValueError(
                f"X has {records.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        names, known = column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise InvalidValueError(
                "X must have the columns of fit in their order, "
                f"{_arguments.listed(known.tolist())}, got {_arguments.listed(names.tolist())}"
            )
        return self._log_density(records)

    @abc.abstractmethod
    def _fit(self, records: Floats) -> None:
        """Fit on checked records."""

    @abc.abstractmethod
    def _log_density(self, records: Floats) -> Floats:
        """Return the log-density at checked points."""


def usable_epsilon(epsilon: Any) -> float:
    """Check an epsilon for draws, and return it as a float."""
    value = _arguments.number("epsilon", epsilon)
    if not 0.0 < value <= LARGEST_EPSILON:
        raise _arguments.invalid(
            f"epsilon must be a finite number above 0 and at most {LARGEST_EPSILON:g}", epsilon
        )
    return value


def _same(left: object, right: object) -> bool:
    try:
        return left is right or bool(left == right)
    except Exception:
        # Arrays compare entry by entry; foreign objects may not compare at all.
        return False
