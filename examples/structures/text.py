"""
Text
====

Counts of words are sparse rows of many columns. ``SVC(kernel="linear",
multi_class="ovr")`` trains one linear SVM for each class, as ``LinearSVC`` does. The texts
here are random words by topic, because the gallery downloads nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline

from slimsvm import SVC

n_rows = 1_500  # tests: 200
rng = np.random.default_rng(0)
topics = {
    "sport": "match goal team player season coach win league ball score",
    "markets": "bank share price profit rate trade market stock fund season",
    "weather": "rain wind storm sun cloud season temperature cold rate ice",
}
common = [
    "the",
    "a",
    "of",
    "to",
    "in",
    "and",
    "is",
    "was",
    "for",
    "on",
    "with",
    "at",
    "by",
    "from",
    "this",
    "that",
]


def text(topic):
    """Twenty words: common ones, some of the topic, and some of any topic."""
    own, any_topic = topics[topic].split(), " ".join(topics.values()).split()
    return " ".join(
        [*rng.choice(common, 12), *rng.choice(own, 2), *rng.choice(any_topic, 6)]
    )


names = rng.choice(list(topics), n_rows + 1_000)
texts = [text(name) for name in names]
clf = make_pipeline(TfidfVectorizer(), SVC(kernel="linear", multi_class="ovr"))
clf.fit(texts[:n_rows], names[:n_rows])

figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    names[n_rows:], clf.predict(texts[n_rows:]), cmap="Blues", colorbar=False, ax=ax
)

# %%
# A linear SVM has one weight for each word and class. Here are the five words that
# speak most for each class; weights are differences of scores of the single words to the
# text without any.

words = clf[0].get_feature_names_out()
weights = clf.decision_function(list(words)) - clf.decision_function([""])
figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.8), sharex=True, layout="constrained")
for ax, name, column in zip(axes, clf.classes_, weights.T, strict=True):
    order = np.argsort(-column)[:5][::-1]
    ax.barh(words[order], column[order])
    ax.set(title=name, xlabel="weight")
