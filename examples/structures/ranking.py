"""
Ranking
=======

The rows of each query are to be sorted. Labels are grades, which can be compared only
within a query. ``RankSVM`` learns a score from pairs, or, with
``loss="average_precision"``, for the top of the list. A regression on the grades is misled
by queries whose grades are all high.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ndcg_score

from slimsvm import SVR, RankSVM

n_queries = 60  # tests: 15
n_test = 200  # tests: 10
rng = np.random.default_rng(0)


def draw(n, size=12):
    """Grades 0 to 4 within queries, each of which has an offset of its own."""
    qid = np.repeat(np.arange(n), size)
    X = rng.normal(size=(n * size, 4))
    quality = X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=len(X))
    offset = rng.normal(size=n)[qid]
    X[:, 2] += 2 * offset
    y = np.clip(np.round(1.5 + quality + 2 * offset), 0, 4).astype(int)
    return X, y, qid


X, y, qid = draw(n_queries)
X_test, y_test, qid_test = draw(n_test)
models = {
    "SVR": SVR(C=1, gamma=0.1).fit(X, y),
    'RankSVM(loss="swaps")': RankSVM(C=10, gamma=0.1).fit(X, y, qid=qid),
    'RankSVM(loss="average_precision")': RankSVM(
        C=10, gamma=0.1, loss="average_precision"
    ).fit(X, y > 2, qid=qid),
}


def ndcg(scores, k):
    """Mean over queries, by scikit-learn's measure."""
    rows = [qid_test == query for query in np.unique(qid_test)]
    return np.mean(
        [
            ndcg_score(y_test[None, own], scores[None, own], k=k)
            for own in rows
            if y_test[own].any()
        ]
    )


firsts = [1, 2, 3, 5, 8, 12]
figure, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
for marker, (name, model) in zip("os^", models.items()):
    scores = model.predict(X_test)
    ax.plot(firsts, [ndcg(scores, k) for k in firsts], marker + "-", label=name)
ax.set(xlabel="k", ylabel="NDCG of the first k rows", xticks=firsts)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
