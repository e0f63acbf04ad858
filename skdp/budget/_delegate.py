"""What a meta-estimator that stands for the estimator it fitted passes on to it."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from copy import deepcopy
from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.budget._errors import guarded

__all__ = ["METHODS", "DelegatingMixin", "inner_has"]

METHODS = (
    "fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
    "transform",
    "fit_transform",
    "inverse_transform",
)


def inner_has(method: str) -> Any:
    """Condition for `available_if`: the inner estimator, fitted if there is one, has `method`."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)  # raises its own error
        return True

    return check


class DelegatingMixin:
    """Methods and attributes of `estimator_`, the fitted clone of the parameter `estimator`."""

    estimator: Any
    estimator_: Any

    @available_if(inner_has("predict"))
    def predict(self, X: ArrayLike, **params: Any) -> NDArray:
        """Predict with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._call("predict", params, X)

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike, **params: Any) -> NDArray:
        """Class probabilities of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._call("predict_proba", params, X)

    @available_if(inner_has("predict_log_proba"))
    def predict_log_proba(self, X: ArrayLike, **params: Any) -> NDArray:
        """Logarithm of the class probabilities of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._call("predict_log_proba", params, X)

    @available_if(inner_has("decision_function"))
    def decision_function(self, X: ArrayLike, **params: Any) -> NDArray:
        """Decision values of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._call("decision_function", params, X)

    @available_if(inner_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> float:
        """Score of the fitted estimator; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True targets.
        **params : dict
            Passed on or routed.

        Returns
        -------
        score : float
        """
        return self._call("score", params, X, y)

    @available_if(inner_has("transform"))
    def transform(self, X: ArrayLike, **params: Any) -> Any:
        """Transform with the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        X_new : array-like of shape (n_samples, n_features_new)
        """
        return self._call("transform", params, X)

    @available_if(inner_has("inverse_transform"))
    def inverse_transform(self, X: ArrayLike, **params: Any) -> Any:
        """Undo the transformation of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_new)
            Transformed samples.
        **params : dict
            Passed on or routed.

        Returns
        -------
        X_original : array-like of shape (n_samples, n_features)
        """
        return self._call("inverse_transform", params, X)

    @available_if(inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the transformed features.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features of X.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return self.estimator_.get_feature_names_out(input_features)

    @available_if(inner_has("set_output"))
    def set_output(self, *, transform: str | None = None) -> DelegatingMixin:
        """Set the container that `transform` returns, as for a pipeline.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            The container; None leaves it as it is.

        Returns
        -------
        self : object
        """
        for estimator in (self.estimator, getattr(self, "estimator_", None)):
            if estimator is not None:
                estimator.set_output(transform=transform)
        return self

    @property
    def classes_(self) -> NDArray:
        """The class labels, of a classifier."""
        check_is_fitted(self)
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        check_is_fitted(self)
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray:
        """Names of features seen in `fit`, where they are strings."""
        check_is_fitted(self)
        return self.estimator_.feature_names_in_

    def _call(self, method: str, params: dict[str, Any], *args: Any) -> Any:
        check_is_fitted(self)
        return guarded(getattr(self.estimator_, method), *args, **self._routed(method, params))

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, method, **params).estimator[method]
        return params

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata go: every method passes them to the same one of `estimator`.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping()
        for method in METHODS:
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        return deepcopy(get_tags(self.estimator))
