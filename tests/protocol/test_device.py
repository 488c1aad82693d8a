"""What a device computes: the estimator's own maps, from any record, in a light process."""

import json
import os
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import skpriv
from skpriv import protocol
from skpriv._estimation._public_maps import RecordMap
from skpriv._estimation._reports import LiftedMomentsQuery
from skpriv.exceptions import PrivacyError
from skpriv.privacy import codebook, read_report, read_task, task_hash
from skpriv.protocol import act, report
from skpriv.protocol._device import is_asked, public_order, scaled_record
from skpriv.protocol._record import floats, weighted

ROOT = Path(skpriv.__file__).parents[1]
RECORDS = [
    ([0.3, -0.2], 0.5), ([30.0, -40.0], 9.0), ([0.0, 0.0], -9.0), ([np.nan, 1.0], np.nan),
    ([np.inf, 1.0], np.inf), ([1e308, -1e308], -1e308), ([1e-320, 0.0], 1e-320),
    ([1e-200, 1e-200], 0.0),
]  # fmt: skip


def fields(users=None, seed="user", data_norm=1.0, bounds_y=(-1.0, 1.0), fit_intercept=False):
    query = LiftedMomentsQuery(RecordMap.of_norm(data_norm, bounds_y, fit_intercept, 2)).wire()
    task = {
        "version": 1,
        "estimator": {},
        "query": query,
        "channel": {
            "name": "codebook", "epsilon": 1.0, "size": 3 + fit_intercept,
            "count": 64, "nearest": 17, "seed": seed,
        },
        "budget": {"epsilon": 1.0, "delta": 0.0},
        "round": 1,
        "users": users or {"n": 10, "seed": 0, "start": 0, "stop": 10},
    }  # fmt: skip
    return {**task, "hash": task_hash(task)}


def text(**options):
    return json.dumps(fields(**options))


@pytest.mark.parametrize("x, y", RECORDS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("data_norm, bounds_y", [
    (1.0, (-1.0, 1.0)), (2.5, (1.0, 4.0)), (1e-3, (-8.0, 2.0)),
])  # fmt: skip
def test_a_device_scales_as_the_estimator_does(x, y, fit_intercept, data_norm, bounds_y):
    maps = RecordMap.of_norm(data_norm, bounds_y, fit_intercept, 2)
    query = fields(data_norm=data_norm, bounds_y=bounds_y, fit_intercept=fit_intercept)["query"]
    with np.errstate(all="ignore"):
        phi, r = scaled_record(query, x, y)
        expected = maps.rows(np.array([x], dtype=float))[0]
    assert_allclose(phi, expected, rtol=1e-14, atol=1e-300)
    assert r == pytest.approx(maps.target(np.array([y], dtype=float))[0], abs=1e-15)
    assert np.linalg.norm(phi) <= 1.0 + 1e-15 and abs(r) <= 1.0


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_rows_of_any_library_are_read_and_what_is_masked_is_missing():
    arrow = pytest.importorskip("pyarrow").array([0.3, 0.4])
    masked = np.ma.masked_array([[0.3], [0.4]], [[False], [True]])
    for row in (arrow, [*arrow], np.matrix([0.3, 0.4]), np.array([0.3, 0.4], dtype=object)):
        assert floats(row).tolist() == [0.3, 0.4]
    for row in (masked, [0.3, masked[1, 0]], [0.3, "0.4"], [np.array(0.3), np.array([0.4])]):
        assert_allclose(floats(row), [0.3, np.nan])


@pytest.mark.parametrize("seed, size", [("user", 18), ("device", 34)])
@pytest.mark.parametrize("x, y", RECORDS)
def test_a_report_is_an_index_of_the_users_codebook(x, y, seed, size):
    task = fields(seed=seed)
    answer = report(json.dumps(task), x, y, user=3)
    assert isinstance(answer, bytes) and len(answer) == size
    drawn, found, index = read_report(task, 3, answer)
    assert found == 3 and 0 <= index < 64
    again = report(json.dumps(task), x, y, user=3)
    if seed == "user":  # one codebook a user: the server knows it before
        assert drawn == read_report(task, 3, again)[0] != read_report(task, 4, answer)[0]
    else:  # nothing in the bytes tells the user
        assert drawn != read_report(task, 3, again)[0] == read_report(task, 4, again)[0]


TASK = fields()
TEXT = json.dumps(TASK)


def test_users_who_are_not_asked_send_nothing():
    users = {"n": 10, "seed": 3, "start": 2, "stop": 5}
    asked = {user for user in range(10) if is_asked(users, user)}
    assert asked == set(public_order(10, 3)[2:5].tolist())
    for user in range(10):
        answer = report(text(users=users), [0.1, 0.2], 0.3, user=user)
        assert (answer is not None) == (user in asked)


@pytest.mark.parametrize("user", [-1, 10, 2.0, "3", True, None])
def test_unknown_users_are_refused(user):
    with pytest.raises(ValueError, match="user="):
        report(TEXT, [0.1, 0.2], 0.3, user=user)


def test_a_changed_task_is_refused():
    for text in ("hello", b"\xff", None, "[" * 100_000, "{}"):
        with pytest.raises(ValueError, match=r"pass the text of .* public_state\(\)"):
            report(text, [0.1, 0.2], 0.3, user=3)
    with pytest.raises(ValueError, match=r"is a task.* public_state\(\)"):
        act(TEXT, [[0.1, 0.2]])
    for name, value in [("budget", {"epsilon": 9.0, "delta": 0.0}), ("round", 2), ("version", 2)]:
        with pytest.raises(ValueError, match="hash|version"):
            read_task(json.dumps({**TASK, name: value}))
    with pytest.raises(ValueError, match="features"):
        report(TEXT, [0.1, 0.2, 0.3], 0.3, user=3)


def test_a_user_decides_on_the_largest_epsilon():
    assert report(TEXT, [0.1, 0.2], 0.3, user=3, largest_epsilon=1.0) is not None
    with pytest.raises(PrivacyError, match="agreed"):
        report(TEXT, [0.1, 0.2], 0.3, user=3, largest_epsilon=0.5)


def test_directions_lean_towards_the_record():
    task = fields()
    text_ = json.dumps(task)
    found = np.zeros(3)
    for _ in range(300):
        seed, _, index = read_report(task, 3, report(text_, [0.6, 0.0], 1.0, user=3))
        found += codebook(seed, 64, 3, [index])[0]
    assert found @ [0.6, 0.0, 0.8] > 0.0  # by nine deviations in the mean: the draws have no seed


def test_a_device_needs_numpy_and_the_standard_library_only():
    script = (
        "import sys; from skpriv.protocol import report; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('scipy', 'sklearn', 'joblib', 'opendp', 'threadpoolctl', 'narwhals', 'pandas')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert found.stdout.strip() == "[]", found.stderr


def test_help_shows_what_is_loaded_late():
    shown = pydoc.plain(pydoc.render_doc(protocol))
    for name in protocol.__all__:
        assert f"{name}(" in shown, name


def test_predictions_and_residuals_are_cut_as_the_curator_cuts_them():
    weights = {"kind": "residual", "theta": [3.0], "limit": 2.0}
    assert weighted(weights, np.ones(1), 0.0)[1] == 0.5  # a prediction is at most 1
    assert weighted({**weights, "limit": 0.5}, np.ones(1), -1.0)[1] == 1.0
