"""scikit-learn's own checks of estimators, and its tools around ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from turnout.errors import InvalidValueError, MissingExtraError, NotFittedError
from turnout.samplers import MinimaxSampler, MollifiedDensity
from turnout_reproduce.boosting import MollifiedBoosting

checks = pytest.importorskip("sklearn.utils.estimator_checks")

#: What scikit-learn skips, and why.
SKIPPED = {
    # Two draws or fits without a seed differ: that is what the estimators are for.
    "check_pipeline_consistency": "is non deterministic",
    # Runs only where an environment variable is set.
    "check_array_api_input": "SCIPY_ARRAY_API is not set",
}

#: Checks that scikit-learn must have made for the test to mean anything.
MADE = {
    "check_dict_unchanged",
    "check_estimators_dtypes",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_readonly_memmap_input",
}


def samplers() -> list[Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KernelDensity

    return [
        MollifiedDensity(),
        MollifiedDensity(estimator=KernelDensity(bandwidth=0.5), proposals=32),
        MollifiedBoosting(n_rounds=2, weak_learner=LogisticRegression()),
    ]


@pytest.mark.parametrize("number", range(3))
# We follow the conventions without deriving from BaseEstimator, since importing turnout must not
# import scikit-learn; scikit-learn says so each time.
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from:UserWarning")
def test_estimator_checks(number: int) -> None:
    results = checks.check_estimator(samplers()[number], on_skip=None, on_fail=None)
    for result in results:
        name, status = result["check_name"], result["status"]
        if status == "skipped":
            assert SKIPPED[name] in str(result["exception"])
        else:
            assert status == "passed", f"{name}: {result['exception']!r}"
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert not MADE - passed


def test_a_search_over_parameters_finds_the_better_ones() -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KernelDensity

    records = np.random.default_rng(1).normal(0.5, 0.1, size=(120, 1))
    search = GridSearchCV(
        MollifiedDensity(4.0, estimator=KernelDensity()),
        {"estimator__bandwidth": [0.05, 5.0], "epsilon": [0.5, 4.0]},
        cv=3,
    ).fit(records)
    assert search.best_params_ == {"epsilon": 4.0, "estimator__bandwidth": 0.05}
    assert search.best_estimator_.sample(1).shape == (1, 1)


def test_a_pipeline_ends_in_a_sampler() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    records = np.random.default_rng(1).lognormal(size=(50, 1))
    pipeline = make_pipeline(FunctionTransformer(np.log), MollifiedDensity(1.0))
    pipeline.fit(records)
    assert np.isfinite(pipeline.score_samples(records)).all()
    assert np.isfinite(pipeline.score(records))


def test_unfitted_samplers_raise_what_scikit_learn_raises() -> None:
    from sklearn.exceptions import NotFittedError as Theirs
    from sklearn.utils.validation import check_is_fitted

    for sampler in (MollifiedDensity(), MollifiedBoosting()):
        with pytest.raises(Theirs):
            check_is_fitted(sampler)
        for call in (
            sampler.sample,
            lambda sampler=sampler: sampler.score_samples([[0.0]]),
            sampler._log_normalizer,
            lambda sampler=sampler: sampler.certificate_,
        ):
            with pytest.raises(NotFittedError, match="is not fitted yet: call fit"):
                call()
    check_is_fitted(MollifiedDensity().fit([[0.0]]))


def test_importing_samplers_imports_no_scikit_learn() -> None:
    program = (
        "import sys, turnout.samplers\n"
        "sys.exit('sklearn' in sys.modules or 'scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_missing_scikit_learn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in list(sys.modules):
        if module == "sklearn" or module.startswith("sklearn."):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for sampler in (MollifiedDensity(), MollifiedBoosting()):
        with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[samplers\]'"):
            sampler.fit([[0.0], [1.0]])
        with pytest.raises(NotFittedError):
            sampler.sample()


@pytest.mark.parametrize(
    "sampler",
    [MollifiedDensity(1.0, random_state=1), MinimaxSampler(low=0.0, high=9.0, random_state=1)],
)
def test_columns_keep_their_names(sampler: Any) -> None:
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(1).normal([0.0, 1.0], 1.0, size=(40, 2))
    frame = pandas.DataFrame(rows, columns=["a", "b"])
    sampler.fit(frame)
    assert sampler.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(sampler.score_samples(frame), sampler.score_samples(rows))
    with pytest.raises(
        InvalidValueError, match=r"the columns of fit in their order, 'a', 'b', got"
    ):
        sampler.score_samples(frame[["b", "a"]])
    assert not hasattr(sampler.fit(rows), "feature_names_in_")
