"""Shapley values of a fitted estimator's scores."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from slimsvm.estimators._shared.validation import check_at_least
from slimsvm.shapley.explanation import Explanation


class Explained:
    """What the scikit-learn faces say of their scores."""

    def explain(
        self, X: Any, background: Any = None, *, n_permutations: int = 100, random_state: Any = 0
    ) -> Explanation:
        """Shapley values: how much each feature of a row adds to its score.

        They are exact for the linear kernel, and for the RBF and Laplacian kernels with one γ or one for each feature.
        For other kernels they are means over permutations of the features. In each case they add up to the score
        minus the base value.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a sparse matrix
        background : array-like of shape (n_background, n_features), a sparse matrix or None, default=None
            The meaning of an absent feature. None: it does not count. Its factor of the kernel is 1 (its term of
            the distance or inner product 0), and the base value is the score at distance 0 from every vector. Rows:
            an absent feature takes their values, and the mean over these rows is taken. These are shap's
            interventional values; the base value is the rows' mean score. They take n_background times as long.
        n_permutations : int, default=100
            For kernels that need them, 4 or more; each is also used in reverse.
        random_state : int, RandomState or None, default=0
            For the permutations.

        Returns
        -------
        Explanation
            With ``values``, ``base_values``, ``data``, ``feature_names``, ``standard_errors`` of sampled values, and
            ``to_shap()``. With several classes there are values for each score: that of a class, or of a pair of
            classes (0, 1), (0, 2), …, as with ``decision_function_shape="ovo"`` (votes are not sums). For ordered
            classes the score before the thresholds is explained, for several labels the score of each label.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        TypeError
            The kernel is the user's function, about whose features nothing is known.
        ValueError
            X or background has another number of features, other columns or non-finite values, the kernel is a matrix
            of values, or the model is a `SequenceSVM` or `StructuredSVM`.

        Notes
        -----
        Scores are computed in float64; `decision_function` of a float32 model rounds them. With a learned metric
        (``gamma="learn"``) the values are those of the unscaled features. The γ of a feature says how fast the kernel
        falls along it, not how much the score depends on it.

        References
        ----------
        Lundberg and Lee, "A unified approach to interpreting model predictions", NeurIPS 2017. Mohammadi, Chau and
        Muandet, "Computing exact Shapley values in polynomial time for product-kernel methods", 2025.

        Examples
        --------
        >>> import slimsvm
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = slimsvm.SVC().fit(X, y == 2)
        >>> found = clf.explain(X[:3], background=X[::10])
        >>> found.values.shape, found.base_values.shape
        ((3, 4), (3,))
        """
        return explained(self, X, background, n_permutations, random_state)


def explained(model: Any, X: Any, background: Any, n_permutations: int, random_state: Any) -> Explanation:
    """See `Explained.explain`; a pipeline of scalers and an estimator, too."""
    from slimsvm.deploy.csr import check_names
    from slimsvm.estimators._shared.pipelines import parts_of, plain_model_of
    from slimsvm.shapley.explaining import explain_scores

    check_at_least("n_permutations", n_permutations, 4)
    _, _, machine = parts_of(model)
    if machine.kernel_.has_features and not machine.kernel_.has_formula:
        raise TypeError(
            "explain knows what a feature adds to the library's kernels, and nothing of a function of yours: "
            "shap.PermutationExplainer(model.decision_function, background) asks for scores alone"
        )
    columns = getattr(X, "columns", None)
    names = columns if columns is not None else getattr(model, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    plain = plain_model_of(model)
    for name, rows in (("X", X), ("background", background)):
        check_names(rows, plain.feature_names, name)
    return explain_scores(plain, X, background, n_permutations, check_random_state(random_state), names)
