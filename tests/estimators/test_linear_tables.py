"""Linear models of tables: sums of columns with heavy tails, which ranks bend."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import slimsvm
from slimsvm import TableClassifier, TableRegressor
from slimsvm.estimators._shared.validating import evenly
from slimsvm.modelfile import ModelFileError, read_model, write_model


def heavy_tails(n, seed, kind):
    """A sum of columns with heavy tails, one of them with gaps, and a level."""
    rng = np.random.default_rng(seed)
    draw = rng.lognormal if kind == "lognormal" else lambda size: rng.standard_t(3, size)
    columns = draw(size=(n, 4))
    level = rng.choice(["a", "b"], n)
    y = columns @ [1.0, 2.0, -1.5, 1.0] + (level == "a")
    gap = rng.random(n) < 0.05
    y -= gap * (columns[:, 0] - 3.0)
    columns[gap, 0] = np.nan
    return {**{f"x{j}": column for j, column in enumerate(columns.T)}, "level": level}, y / 6.0


@pytest.mark.parametrize("kind", ["lognormal", "t3"])
@pytest.mark.parametrize("preset", ["accurate", "small"])
def test_a_sum_of_columns_with_heavy_tails_is_learned(kind, preset, tmp_path):
    """Ranks bend what is straight, and end where training rows end, which few new rows exceed by far."""
    table, y = heavy_tails(500, 0, kind)
    new, expected = heavy_tails(2000, 1, kind)
    model = TableRegressor(preset=preset, n_jobs=1).fit(table, y)
    assert "linear model with C=" in model.report_
    assert np.sqrt(np.mean((model.predict(new) - expected) ** 2)) < 0.03 * np.std(expected)
    model.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict(new), model.predict(new))
    np.testing.assert_allclose(
        slimsvm.load_predictor(tmp_path / "m.slim").predict(new), model.predict(new), rtol=1e-4, atol=1e-5
    )
    slopes, used = np.array([2.0, -1.5, 1.0]) / 6.0, evenly(500, 200)
    moves = [abs(slope) * np.std(table[name][used]) for slope, name in zip(slopes, ("x1", "x2", "x3"))]
    np.testing.assert_allclose(model.feature_importances_[1:4] / model.feature_importances_[1], moves / moves[0], 0.1)
    some, others = ({name: column[rows] for name, column in new.items()} for rows in (slice(3), slice(50, 90)))
    found = model.explain(some, others, n_permutations=8)
    values = slopes * np.column_stack([some[name] - others[name].mean() for name in ("x1", "x2", "x3")])
    np.testing.assert_allclose(found.values[:, 1:4], values, atol=0.02)


def test_linear_models_are_chosen_for_odds_that_are_sums():
    table, odds = heavy_tails(500, 0, "lognormal")
    new, expected = heavy_tails(2000, 1, "lognormal")
    rng = np.random.default_rng(2)
    y, test = (rng.random(len(z)) < 1 / (1 + np.exp(-6 * (z - 0.3))) for z in (odds, expected))
    model = TableClassifier(n_jobs=1).fit(table, y)
    assert sum(machine.weight for machine in model.machines_ if machine.recipe.kernel == "linear") > 0.5
    best = log_loss(test, 1 / (1 + np.exp(-6 * (expected - 0.3))))
    assert log_loss(test, model.predict_proba(new)) < 1.15 * best


def test_straight_numbers_are_left_out_where_no_linear_model_stays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = TableRegressor(n_jobs=1).fit(X, np.sin(2 * X[:, 0]) * X[:, 1])
    assert model.encoding_.n_features == 3
    assert not any(machine.recipe.kernel == "linear" for machine in model.machines_)


def test_a_linear_model_needs_all_features(tmp_path):
    TableRegressor(n_jobs=1).fit(*heavy_tails(300, 0, "t3")).save(tmp_path / "m.slim")
    header, arrays = read_model(tmp_path / "m.slim")
    name = next(f"machine{j}_weights" for j, each in enumerate(header["machines"]) if each["recipe"][0] == "linear")
    write_model(tmp_path / "m.slim", header, arrays | {name: arrays[name][:-1]}, version=2)
    for read in (slimsvm.load, slimsvm.load_predictor):
        with pytest.raises(ModelFileError):
            read(tmp_path / "m.slim")
