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

        They are exact for the RBF kernel and the Laplacian one, with one γ or one for each feature, and for the linear
        one; of other kernels they are means over permutations of the features. In each case they add up to the score
        less the base value.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a sparse matrix
        background : array-like of shape (n_background, n_features), a sparse matrix or None, default=None
            What a feature is when it is absent. None: it does not count, its factor of the kernel is 1 (its term of
            the distance or inner product 0), so that the base value is the score at distance 0 of every vector. Rows:
            it has their values, and the mean over these rows is taken: the interventional values of shap, whose base
            value is the mean score of the rows. They take n_background times as long.
        n_permutations : int, default=100
            Of kernels that need them, 4 or more; each goes with its reverse.
        random_state : int, RandomState or None, default=0
            Of the permutations.

        Returns
        -------
        Explanation
            With ``values``, ``base_values``, ``data``, ``feature_names``, ``standard_errors`` of sampled values, and
            ``to_shap()``. Of several classes there are values for each score: that of a class, or of a pair of classes
            (0, 1), (0, 2), …, which ``decision_function_shape="ovo"`` gives as well; votes are no sums. Of ordered
            classes the score before the thresholds is explained, of several labels each one's.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        TypeError
            The kernel is the user's function: it says nothing of single features.
        ValueError
            X or background has another number of features or values that are not finite, the kernel is a matrix of
            values, or the model labels sequences or by a task.

        Notes
        -----
        Scores are those of float64, which `decision_function` of a model in float32 rounds. Values of a learned metric
        (``gamma="learn"``) are of the features as they are; its γ, one for each feature, say how fast the kernel falls
        along it, and nothing of how much the score depends on it.

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
    return explain_scores(plain_model_of(model), X, background, n_permutations, check_random_state(random_state), names)
