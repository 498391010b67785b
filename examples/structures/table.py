"""
A raw table
===========

Numbers, texts, categories, dates and missing values: ``TableClassifier`` needs no
parameters. ``report_`` says how it read each column, what it tried, and what it chose.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from slimsvm import TableClassifier

n_rows = 400  # tests: 120
rng = np.random.default_rng(0)
n = n_rows + 1_000
passengers = pd.DataFrame(
    {
        "class": rng.choice(["first", "second", "third"], n),
        "sex": rng.choice(["male", "female"], n),
        "age": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(1, 80, n).round()),
        "fare": [f"{fare:,.2f}" for fare in rng.lognormal(4, 2, n)],
        "boarded": pd.Timestamp("1912-04-10")
        + pd.to_timedelta(rng.integers(0, 72, n), "h"),
        "ship": "Titanic",
    }
)
odds = (
    1.5 * (passengers["sex"] == "female")
    - (passengers["class"] == "third")
    + (passengers["age"] < 15)
    - 0.5
)
survived = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * odds)), "yes", "no")

clf = TableClassifier().fit(passengers[:n_rows], survived[:n_rows])
print(clf.report_)

# %%
# How far probabilities move if a column is replaced by its mean, as shares.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
order = np.argsort(clf.feature_importances_)
ax.barh(passengers.columns[order], clf.feature_importances_[order])
score = clf.score(passengers[n_rows:], survived[n_rows:])
ax.set(
    xlabel="importance of the column",
    title=f"{100 * score:.1f} % of the test rows are right",
)
