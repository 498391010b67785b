"""Registered kernels for suites that go through them: a kernel that is added turns up in these by itself."""

from slimsvm.kernels import KERNELS, kernels_with

# Those with a formula, of which models score without training code; and of these those of x - z.
WITH_FORMULA = [name for name, kernel in KERNELS.items() if kernel.form in ("products", "squares", "absolute", "terms")]
OF_DISTANCES = [name for name in WITH_FORMULA if KERNELS[name].form in ("squares", "absolute")]


def with_metric(gamma, gammas=None):
    """One of every kernel that has a metric, by name, and one with a gamma for each feature where these are given."""
    metric = {name: kernel for name, kernel in KERNELS.items() if kernel.has_metric}
    found = {name: kernel(gamma) for name, kernel in metric.items()}
    return found | (
        {} if gammas is None else {f"{name}-per-feature": kernel(gammas) for name, kernel in metric.items()}
    )


# What is said of kernels that have none.
NO_DERIVATIVE = f"needs kernel {kernels_with('has_gradient')}, found"
NO_METRIC = f"gamma='learn' needs kernel={kernels_with('has_metric')}, found"
