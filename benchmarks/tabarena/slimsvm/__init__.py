"""A mean of kernel machines, found without a parameter by slimsvm's `TableClassifier` and `TableRegressor`."""
