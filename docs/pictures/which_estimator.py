"""Draws which_estimator.svg: questions in the order in which they are asked, and what to write where the answer is yes.

    python docs/pictures/which_estimator.py

The page includes the picture as part of itself, so that it has the page's colours, light or dark, and its links work.
"""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_suffix(".svg")

# What is asked; what to write; the page that the answer leads to.
FIRST = (
    ("raw tables: texts, categories, dates", "TableClassifier(), TableRegressor()", "api/slimsvm.TableClassifier.html"),
    ("sequences, a label for each row", "SequenceSVM()", "api/slimsvm.SequenceSVM.html"),
    ("rows to sort within queries", "RankSVM()", "api/slimsvm.RankSVM.html"),
    ("another structure: trees, grids, …", "StructuredSVM(task)", "tutorials/own_task.html"),
    ("normal rows only, novelties to find", "OneClassSVM()", "api/slimsvm.OneClassSVM.html"),
    ("classes with an order", "OrdinalSVC()", "api/slimsvm.OrdinalSVC.html"),
    ("numbers to predict", "SVR()", "api/slimsvm.SVR.html"),
    ("classes, or several labels a row", "SVC()", "api/slimsvm.SVC.html"),
)
THEN = (
    ("C and gamma are not known", 'C="validate", gamma="validate"', "gallery/first_steps/grid_search.html"),
    ("the model must be small", 'max_basis=100, or "auto"', "gallery/small_models/compare_methods.html"),
    ("features are not equally useful", 'gamma="learn"', "gallery/small_models/learned_scales.html"),
    ("features have long tails", 'NormalRanks() first, "laplacian"', "gallery/kernels_and_losses/normal_ranks.html"),
    ("effects of columns add up", 'kernel="additive"', "gallery/kernels_and_losses/additive_curves.html"),
    ("rows are texts", 'kernel="linear", multi_class="ovr"', "gallery/structures/text.html"),
    ("a class is rare", 'class_weight="balanced", loss="f1"', "gallery/labels/imbalance.html"),
    ("labels are wrong", 'loss="ramp", CrossTrainedSVC()', "gallery/labels/compare_editing.html"),
    ("probabilities are needed", "probability=True", "gallery/probabilities/compare_calibration.html"),
    ("sets or intervals with a guarantee", "calibration_size=0.2", "gallery/probabilities/conformal_sets.html"),
    ("rows do not fit into memory", "Blocks(…), max_basis=100", "gallery/large/blocks.html"),
    ("rows arrive in chunks", 'solver="bsgd", partial_fit', "gallery/large/streams.html"),
)

WIDTH, LINE, BOX = 640, 46, 34
LEFT, RIGHT = (4, 290), (332, 304)  # where boxes begin, and how wide they are

# A page of the documentation has the variables; elsewhere the colours behind them hold.
STYLE = """
.decide { --ink: var(--color-foreground-primary, #1a1c1e); --paper: var(--color-background-primary, #ffffff);
  --link: var(--color-link, #0a4bff); --edge: var(--color-foreground-muted, #6b6f76); }
.decide text { font-family: var(--font-stack, sans-serif); font-size: 15px; fill: var(--ink); }
.decide .heading { font-weight: bold; }
.decide .yes { font-size: 12px; fill: var(--edge); }
.decide .code { font-family: var(--font-stack--monospace, monospace); font-size: 13px; fill: var(--link); }
.decide rect { fill: var(--paper); stroke: var(--edge); }
.decide a rect { stroke: var(--link); stroke-width: 1.5; }
.decide a:hover rect { stroke-width: 3; }
.decide line { stroke: var(--edge); stroke-width: 1.5; }
.decide path { fill: var(--edge); }
"""


def picture() -> str:
    """The whole picture."""
    parts = [_heading(24, "You have …"), *_questions(40, FIRST)]
    below = 40 + LINE * len(FIRST)
    parts += [_heading(below + 32, "And with SVC() and SVR() …"), *_questions(below + 48, THEN)]
    height = below + 48 + LINE * len(THEN)
    return (
        f'<svg class="decide" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Which estimator: questions, and what to write where the answer is yes" '
        f'style="width: 100%; max-width: {WIDTH}px; height: auto">\n<style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _heading(y: int, text: str) -> str:
    return f'<text class="heading" x="{LEFT[0]}" y="{y}">{escape(text)}</text>'


def _questions(top: int, questions: tuple[tuple[str, str, str], ...]) -> list[str]:
    """A line for each question: its box, an arrow to the answer's, and one down to the next question."""
    parts = []
    for number, (question, answer, page) in enumerate(questions):
        y = top + LINE * number
        middle, end = y + BOX / 2, sum(LEFT)
        parts += [
            f'<rect x="{LEFT[0]}" y="{y}" width="{LEFT[1]}" height="{BOX}" rx="6"/>',
            f'<text x="{LEFT[0] + 10}" y="{middle + 5}">{escape(question)}</text>',
            f'<line x1="{end}" y1="{middle}" x2="{RIGHT[0] - 7}" y2="{middle}"/>',
            f'<path d="M {RIGHT[0]} {middle} l -9 -5 v 10 z"/>',
            f'<text class="yes" x="{end + 12}" y="{middle - 5}">yes</text>',
            f'<a href="{page}"><rect x="{RIGHT[0]}" y="{y}" width="{RIGHT[1]}" height="{BOX}" rx="6"/>'
            f'<text class="code" x="{RIGHT[0] + 10}" y="{middle + 5}">{escape(answer)}</text></a>',
        ]
        if number + 1 < len(questions):
            x = LEFT[0] + 24
            parts.append(f'<line x1="{x}" y1="{y + BOX}" x2="{x}" y2="{y + LINE}"/>')
    return parts


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
