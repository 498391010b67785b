"""Pictures of peers: fronts, and the names of those on them."""

from benchmarks.peers.command import draw_fronts, plot


def record(method, ours, seconds, error, **more):
    numbers = {"seconds": seconds, "predict_us": seconds, "n_vectors": None, "test_error": error}
    return {"data": "a set", "method": method, "ours": ours, "status": "done"} | numbers | more


RECORDS = [
    record("quick", True, 1.0, 0.2), record("slow", True, 9.0, 0.1, n_vectors=7), record("worse", True, 3.0, 0.3),
    record("trees", False, 2.0, 0.15), record("more trees", False, 4.0, 0.15),
]  # fmt: skip


def test_numbers_beside_the_points_of_a_front_stand_for_their_names():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw_fronts(ax, RECORDS, "seconds") == ["1  quick", "2  slow", "3  trees"]
    told = {text.get_text(): text.xy for text in ax.texts}
    assert told == {"1": (1.0, 20.0), "2": (9.0, 10.0), "3": (2.0, 15.0)}


def test_methods_without_vectors_are_left_out_of_their_panel():
    from matplotlib.figure import Figure

    assert draw_fronts(Figure().subplots(), RECORDS, "n_vectors") == ["1  slow"]


def test_each_set_has_its_picture(tmp_path):
    other = record("quick", True, 1.0, 0.2) | {"data": "another"}
    paths = plot({"records": [*RECORDS, other, record("ended", False, 0.0, 0.0, status="time limit")]}, tmp_path)
    assert [path.name for path in paths] == ["peers-a-set.png", "peers-another.png"]
    assert all(path.stat().st_size for path in paths)
