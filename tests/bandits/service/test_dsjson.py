"""Rounds in Vowpal Wabbit's line format."""

import io
import json
import pathlib
import runpy

import numpy as np
import pytest

from skpriv.bandits import read_dsjson

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "production" / "write_dsjson.py"
write_dsjson = runpy.run_path(str(EXAMPLE))["write_dsjson"]


def test_round_trip(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    contexts = rng.normal(size=(7, 3, 2))
    actions, rewards = rng.integers(3, size=7), rng.uniform(size=7)
    file = io.StringIO()
    write_dsjson(file, contexts, actions, rewards, np.full(7, 0.4), list("abcdefg"))
    rounds = read_dsjson(file.getvalue().splitlines())
    np.testing.assert_array_equal(rounds.contexts, contexts)
    np.testing.assert_array_equal(rounds.actions, actions)
    np.testing.assert_array_equal(rounds.rewards, rewards)
    assert rounds.event_ids == list("abcdefg")


def test_vowpal_wabbit_learns_from_it(tmp_path):
    vw = pytest.importorskip("vowpalwabbit")
    path = tmp_path / "log.dsjson"
    with path.open("w") as file:
        contexts = np.random.default_rng(0).normal(size=(20, 3, 2))
        write_dsjson(file, contexts, [1] * 20, [1.0] * 20, [0.5] * 20, range(20))
    model = vw.Workspace(f"--cb_adf --dsjson -d {path} --quiet")
    model.finish()


def test_shared_features_and_texts():
    line = {
        "_label_cost": -1, "_label_probability": 0.5, "_label_Action": 2, "EventId": "x",
        "a": [2, 1], "p": [0.5, 0.5],
        "c": {"User": {"age": 3, "sex": "f"}, "_multi": [{"f": {"v": 1}}, {"f": {"v": 2}}]},
    }  # fmt: skip
    rounds = read_dsjson([json.dumps(line)])
    assert rounds.features == ["User.age", "User.sex=f", "f.v"]
    assert rounds.contexts.tolist() == [[[3, 1, 1], [3, 1, 2]]]
    assert read_dsjson([json.dumps(line)], features=["f.v", "f.w"]).contexts.tolist() == [
        [[1, 0], [2, 0]]
    ]


def test_errors_name_no_line_and_quote_none():
    with pytest.raises(ValueError, match="^a line is no event of dsjson.$"):
        read_dsjson(['{"_label_Action": "secret", "c": {}}'])


PERSONALIZER = [
    # as Azure Personalizer and the Decision Service log them
    '{"_label_cost":-1.0,"_label_probability":0.8666667,"_label_Action":3,"_labelIndex":2,'
    '"o":[{"v":1.0,"EventId":"a1","ActionTaken":false}],"Timestamp":"2018-12-05T20:08:35Z",'
    '"Version":"1","EventId":"a1","a":[3,1,2],"c":{"GUser":[{"id":"rnc","major":"eng",'
    '"hobby":null}],"_multi":[{"TAction":[{"topic":"SkiConditions","hot":true}]},'
    '{"_tag":"t2","TAction":[{"topic":"Spanish","hot":false}],"numbers":[0.5,2]},'
    '{"TAction":[{"topic":"Health","weight":1.5}],"j":[{"_text":"red wine"}]}]},'
    '"p":[0.8666667,0.0666667,0.0666667],"VWState":{"m":"x"},"pdrop":0.75}',
    '{"RewardValue":1.0,"EnqueuedTimeUtc":"2018-12-05","EventId":"a1"}',
    '{"_label_cost":0,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"_skipLearn":true,'
    '"Version":"1","EventId":"a2","a":[1,2],"c":{"_multi":[{"f":1},{"f":2}]},"p":[0.5,0.5]}',
    "",
    '{"_label_cost":-0.25,"_label_probability":0.5,"_label_Action":2,"_labelIndex":1,'
    '"_original_label_cost":-0.25,"Version":"1","EventId":"a3","a":[2,1],'
    '"c":{"GUser":[{"id":"mk"}],"_multi":[{"TAction":[{"topic":"Health"}]},'
    '{"TAction":[{"weight":2}]}]},"p":[0.5,0.5]}',
]


def test_lines_of_personalizer():
    rounds = read_dsjson(PERSONALIZER)
    assert rounds.event_ids == ["a1", "a3"] and rounds.contexts.shape[:2] == (2, 3)
    assert rounds.available.tolist() == [[True] * 3, [True, True, False]]
    assert rounds.actions.tolist() == [2, 1] and rounds.rewards.tolist() == [1.0, 0.25]
    assert rounds.weights.tolist() == [4.0, 1.0]
    rows = [
        {name: x for name, x in zip(rounds.features, row, strict=True) if x}
        for row in rounds.contexts[0]
    ]
    user = {"GUser.id=rnc": 1.0, "GUser.major=eng": 1.0}
    assert rows == [
        {**user, "TAction.topic=SkiConditions": 1.0, "TAction.hot": 1.0},
        {**user, "TAction.topic=Spanish": 1.0, "numbers[0]": 0.5, "numbers[1]": 2.0},
        {**user, "TAction.topic=Health": 1.0, "TAction.weight": 1.5, "j.red": 1.0, "j.wine": 1.0},
    ]
    assert not rounds.contexts[1, 2].any()
    assert rounds.n_left_out == 2
    chosen = read_dsjson(PERSONALIZER, features=["TAction.weight", "unknown"])
    assert chosen.contexts[:, :, 0].tolist() == [[0, 0, 1.5], [0, 2, 0]]


@pytest.mark.parametrize(
    "change", [{"pdrop": 1.0}, {"_label_Action": 9}, {"_label_cost": "x"}, {"c": {"_multi": 3}}]
)
def test_what_is_no_event_is_refused(change):
    line = json.dumps({**json.loads(PERSONALIZER[0]), **change})
    with pytest.raises(ValueError, match="^a line is no event of dsjson.$"):
        read_dsjson([PERSONALIZER[0], line])


def test_namespaces_with_one_name_inside_are_apart():
    line = {**json.loads(PERSONALIZER[-1]), "_label_Action": 1}
    line["c"] = {"User": {"id": 3}, "_multi": [{"Item": {"id": 5}}]}
    rounds = read_dsjson([json.dumps(line)])
    assert rounds.features == ["User.id", "Item.id"] and rounds.contexts.tolist() == [[[3, 5]]]
