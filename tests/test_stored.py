"""Files of strangers: what they name, do and need; and files of version 0.2."""

import copy
import importlib
import inspect
import json
import pickle
import pkgutil
import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from registry.estimators import ssp
from sklearn.base import BaseEstimator

import skpriv
from skpriv import BudgetAccountant, from_dict, to_dict
from skpriv._codec import MOST_DEPTH, decoded, encoded, parsed
from skpriv._sqlite import Database
from skpriv._stored import _OF_POLICIES, _STORED
from skpriv.bandits import EpochGreedy, LinUCB, Loop, load
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import LinearRegression, SSPRegressor

OLD = json.loads(Path(__file__).with_name("registry").joinpath("models_0_2.json").read_text())
X = np.linspace(-1.0, 1.0, 1000)[:, None]


def plain(**changes):
    """A true model as plain values, with other attributes."""
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0])
    values = to_dict(model)
    values["model"]["fitted"] |= changes
    return values


def test_an_old_fit_with_instruments_is_refused_with_the_remedy():
    """Its first stage had other parts."""
    (case,) = [case for case in OLD if case["name"] == "instruments"]
    with pytest.raises(ValueError, match="fit again"):
        from_dict(case["model"])


READ = [case for case in OLD if case["name"] != "instruments"]


@pytest.mark.parametrize("case", READ, ids=lambda case: case["name"])
def test_models_of_version_0_2_are_read(case):
    model = from_dict(case["model"])
    table = isinstance(case["rows"], dict)
    rows = pd.DataFrame(case["rows"]) if table else np.array(case["rows"])
    predicted = model.predict(rows)
    if predicted.dtype.kind == "f":
        assert predicted == pytest.approx(case["predicted"], rel=1e-12)
    else:
        assert predicted.tolist() == case["predicted"]
    last = model[-1] if table else model
    report = str(last.privacy_report_).replace(", once encoded,", "")  # these words are newer
    assert report == case["report"]
    assert to_dict(from_dict(to_dict(model))) == to_dict(model)


def classes():
    """Every class that a module of skpriv defines."""
    found = {}
    for info in pkgutil.walk_packages(skpriv.__path__, "skpriv."):
        if not info.name.endswith("__main__"):
            for kind in vars(importlib.import_module(info.name)).values():
                if inspect.isclass(kind) and kind.__module__.split(".")[0] == "skpriv":
                    found[f"{kind.__module__.split('.')[1]}.{kind.__name__}"] = kind
    return found


def nodes(name):
    """All that a file may say to have an object of a class."""
    for arguments in ([], ["service.sqlite"], [0, "s.db"]):
        yield {"tuple": arguments, "of": name}
        yield {"list": arguments, "of": name}
    yield {"object": name, "state": {}}
    yield {"object": name, "state": {"path": "s.db"}}
    yield {"estimator": name, "params": {}, "fitted": {}}
    yield {"bytes": "", "of": name}


def test_no_class_is_read_that_does_not_say_that_it_is_stored():
    """Nor those of policies in a model, by any of their names."""
    found, refused = classes(), 0
    for name, kind in found.items():
        other = f"{kind.__module__}:{kind.__qualname__}"
        for of_policies in (False, True):
            allowed = _STORED.get(name) is kind and (of_policies or kind not in _OF_POLICIES)
            for node in () if allowed else (*nodes(name), *nodes(other)):
                with pytest.raises(ValueError, match="is no class that|import the package"):
                    decoded(node, of_policies=of_policies)
                refused += 1
    assert len(found) > 300 and refused > 5_000
    for name in ("BudgetAccountant", "Ledger", "_Place", "Numbering", "NoiseSource"):
        with pytest.raises(ValueError, match="is no class that"):
            decoded({"object": f"privacy.{name}", "state": {}})


STRANGE = [
    "os.system", "posix.system", "builtins.eval", "subprocess.Popen", "privacy.os", "bandits.np",
    "sklearn.Ridge", "sklearn.linear_model._ridge:Ridge", "numpy:ndarray", "skpriv:load", "",
    "linear_model", "linear_model.", ".LinearRegression", "linear_model._linear.LinearRegression",
    "../linear_model.LinearRegression", "linear_model.LinearRegression.fit", "__main__.main",
    "_cli.main", "bandits.Loop", "protocol.DeviceLedger", "privacy.BudgetAccountant",
    "linear_model.__builtins__", "privacy.Cost.__init__", "linear_model.LinearRegression\0",
    "skpriv.linear_model:LinearRegression", "sklearn.pipeline:Pipeline", "numpy.random:RandomState",
]  # fmt: skip


@pytest.mark.parametrize("name", [*STRANGE, None, 1, ["a"], {"float": "nan"}])
def test_names_of_anything_else_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    for node in nodes(name):
        with pytest.raises(ValueError, match="is no class that|import the package|damaged"):
            from_dict(plain(extra_=node))
    assert not list(tmp_path.iterdir())
    assert not {name for name in set(sys.modules) - before if "skpriv" in name}


def deep(size, kind):
    value = 1.0
    for _ in range(size):
        value = [value] if kind == "list" else {"dict": [["a", value]]}
    return value


def twins(size, kind):
    """A value that holds another one twice, which holds one twice: 2**size in a small file."""
    value: dict = {"#id": 0, "tuple": []}
    for number in range(1, size):
        both = [value, {"ref": number - 1}]
        value = {"#id": number, kind: both}
        if kind == "object":
            value = {"#id": number, "object": "privacy.Budget",
                     "state": dict(zip(("epsilon", "delta"), both, strict=True))}  # fmt: skip
    return value


ENTRIES = {"shape": [2], "dtype": "<f8"}
HOSTILE = {
    "array of objects": {"array": [{"object": "privacy.Cost", "state": {}}], "shape": [1],
                         "dtype": "|O"},
    "negative shape": {"array": [1.0, 2.0], "shape": [-1], "dtype": "<f8"},
    "wrong shape": {"array": [1.0, 2.0], "shape": [3], "dtype": "<f8"},
    "huge shape": {"array": [], "shape": [0, 2**62], "dtype": "<f8"},
    "huge texts": {"array": ["a"], "shape": [1], "dtype": "<U999999999"},
    "many huge texts": {"array": ["a"] * 10_000, "shape": [10_000], "dtype": "<U999999"},
    "short texts in long places": {"array": ["a"] * 500, "shape": [500], "dtype": "<U900000"},
    "one text in many long places": [{"array": ["a"], "shape": [1], "dtype": "<U999999"}] * 100,
    "shape of floats": {"array": [1.0], "shape": [1.0], "dtype": "<f8"},
    "shape of truths": {"array": [1.0], "shape": [True], "dtype": "<f8"},
    "dtype of fields": {"array": [1.0, 2.0], "shape": [2], "dtype": "i4,i4"},
    "dtype by name": {"array": [1.0, 2.0], "shape": [2], "dtype": "float64"},
    "dtype of a module": {"array": [1.0, 2.0], "shape": [2], "dtype": "numpy.float64"},
    "void": {"array": "AAAA", "shape": [1], "dtype": "|V3"},
    "objects as bytes": {"array": "AAAAAAAAAAA=", "shape": [1], "dtype": "|O8"},
    "too few bytes": {"array": "AAAA", "shape": [1], "dtype": "<f8"},
    "no bytes": {"array": "%%%%", "shape": [1], "dtype": "<f8"},
    "numbers as texts": {"array": ["1", "2"], **ENTRIES},
    "lists as numbers": {"array": [[1.0], [2.0]], **ENTRIES},
    "integers beyond 64 bits": {"array": [10**30, 1], "shape": [2], "dtype": "<i8"},
    "integers beyond floats": {"array": [10**400, 1], **ENTRIES},
    "a float beyond": {"array": [1e999, 1.0], **ENTRIES},
    "a number beyond": 1e999,
    "an infinite matrix": {"array": [{"float": "inf"}, 1.0], "shape": [1, 2], "dtype": "<f8"},
    "bytes of an infinite matrix": {"array": "AAAAAAAA8H8=", "shape": [1, 1], "dtype": "<f8"},
    "an unknown number": {"float": "nan(1)"},
    "a number of a list": {"float": [1]},
    "a pickle": {"bytes": "gASVIAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAVlY2hvlIWUUpQu", "of": 1},
    "a ref to nothing": {"ref": 99},
    "a ref to itself": {"#id": 1, "dict": [["a", {"ref": 1}]]},
    "a ref to a list": {"ref": [1]},
    "an id that is none": {"#id": -1, "array": [], "shape": [0], "dtype": "<f8"},
    "apart": {"apart": 0},
    "a seed": {"generator": {"key": {"array": [0] * 624, "shape": [624], "dtype": "<u4"},
                             "pos": 0, "has_gauss": 0, "gauss": 0.0}},
    "a slice of texts": {"slice": ["a", "b"]},
    "pairs of three": {"dict": [[1, 2, 3]]},
    "keys that are none": {"dict": [[[1], 2]]},
    "a set of lists": {"set": [[1]]},
    "a step that is none": {"pipeline": [["a", {"object": "privacy.Cost", "state": {}}]]},
    "a named tuple": {"tuple": [1], "of": "_estimation.Line"},
    "a tuple of an estimator": {"tuple": [1], "of": "linear_model.SSPRegressor"},
    "an estimator as an object": {"object": "linear_model.SSPRegressor",
                                  "state": {"random_state": 1}},
    "an object as an estimator": {"estimator": "privacy.Cost", "params": {}, "fitted": {}},
    "another parameter": {"estimator": "linear_model.SSPRegressor",
                          "params": {"n_samples": 1}, "fitted": {}},
    "a method": {"estimator": "linear_model.SSPRegressor", "params": {},
                 "fitted": {"predict": 1}},
    "a class attribute": {"estimator": "linear_model.SSPRegressor", "params": {},
                          "fitted": {"interval_claims": ["certified"]}},
    "features without end": {"estimator": "linear_model.SSPRegressor", "params": {},
                             "fitted": {"n_features_in_": 2**70}},
    "fewer features than none": {"estimator": "linear_model.SSPRegressor", "params": {},
                                 "fitted": {"n_features_in_": -1}},
    "a class": {"estimator": "linear_model.SSPRegressor", "params": {},
                "fitted": {"__class__": 1}},
    "an accountant": {"estimator": "linear_model.SSPRegressor", "params": {},
                      "fitted": {"_skpriv_accountants": [["ledger.db", "x"]]}},
    "attributes that are none": {"object": "privacy.Cost", "state": [1]},
    "a deep list": deep(MOST_DEPTH + 1, "list"),
    "a deep mapping": deep(MOST_DEPTH + 1, "dict"),
    "refs of refs": [{"#id": k, "dict": [["a", [{"ref": k + 1}, {"ref": k + 1}]]]}
                     for k in range(60)],
    "refs of refs that end": {"tuple": [
        *({"#id": k, "tuple": [{"ref": k + 1}] * 2} for k in range(40)), {"#id": 40, "set": []}]},
    "twins of twins": twins(40, "tuple"),
    "twins of twins in an array": {"array": [twins(40, "list")], "shape": [1], "dtype": "|O"},
    "twins of twins under two names": {**twins(40, "tuple"), "ref": 0},
    "a key that is long to hash": {"set": [twins(40, "object")]},
    "a chain of refs": [{"#id": k, "object": "linear_model.Bin", "state": {"parent":
                        {"ref": k + 1}}} for k in range(5000)],
}  # fmt: skip


@pytest.mark.parametrize("node", HOSTILE.values(), ids=HOSTILE)
def test_hostile_values_are_refused_in_words(node):
    with pytest.raises(ValueError, match="damaged|no class that|does not know"):
        from_dict(plain(extra_=node))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, '{"a":' * 100_000, '{"format": 1, "format": 1, "model": {}}',
        '{"format": NaN, "model": 1}', '{"format": 1, "model": -Infinity}', "1" * 5000,
        b"\x80\x05.", b"\xff\xfe", "",
    ],
)  # fmt: skip
def test_texts_that_are_no_json_are_refused(text, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="damaged|not JSON|not a model of skpriv") as caught:
        skpriv.load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("skpriv._codec.MOST_BYTES", 1000)
    path = tmp_path / "model.json"
    path.write_text(" " * 1001)
    with pytest.raises(ValueError, match="more than 1,000 bytes.*joblib"):
        skpriv.load(path)
    path.unlink()
    with pytest.raises(ValueError, match="bytes as JSON.*joblib"):
        skpriv.save(from_dict(plain()), path)
    assert not path.exists()


def test_a_new_fit_draws_secure_noise_whatever_the_file_says():
    values = plain()
    values["model"]["params"]["random_state"] = 1
    model = from_dict(values)
    assert model.random_state is None
    assert model.fit(X, X[:, 0]).privacy_report_.secure


def test_a_model_is_an_estimator():
    for value in (1, [1], {"dict": []}, to_dict(ssp().fit(X, X[:, 0]))["model"]["params"]):
        with pytest.raises(ValueError, match="damaged"):
            from_dict({"format": 1, "model": value})


# What reading may cause: Python's own look-ups. All else fails: files, processes, pickles, imports.
WATCH = textwrap.dedent(
    """
    import json, sys, skpriv, skpriv.bandits, skpriv.inspection, skpriv.model_selection
    from skpriv import bandits
    from skpriv._codec import decoded, parsed
    with open(sys.argv[1]) as file: jobs = json.load(file)
    def answer(path):
        with open(path, "rb") as file: return decoded(parsed(file.read()), of_policies=True)
    readers = {"model": skpriv.load, "policy": bandits.load, "answer": answer}
    events, HARMLESS = [], ("object.__getattr__", "object.__setattr__", "builtins.id",
                            "sys._getframe", "array.__new__")
    def read(kind, path):
        try: readers[kind](path)
        except ValueError: pass
    for job in jobs: read(*job)  # what is imported late is imported now
    sys.addaudithook(lambda event, given: events.append((event, str(given)[:200])))
    for kind, path in jobs:
        events.clear()
        read(kind, path)
        found = [e for e in events if e[0] not in HARMLESS]
        opened = [e for e in found if e[0] == "open" and path in e[1]]
        assert len(opened) == 1 and found == opened, (path, found)
    print(len(jobs))
    """
)


def played(policy, stop=40):
    rng = np.random.default_rng(0)
    for _ in range(stop):
        contexts = rng.uniform(-1.0, 1.0, (1, 2, 2)) / 2.0
        policy.update(contexts, policy.act(contexts), [1.0])
    return policy


def epochs(**given):
    oracle = LinearRegression(data_norm=1.0, bounds_y=(0, 1), epsilon=0.9)
    return EpochGreedy(oracle, schedule=30, **given)


def test_reading_does_nothing_but_read(tmp_path):
    """Under a hook that sees what the process does: a file is opened, the one that is read.

    Models of all kinds and forged ones; objects of each stored class, with no attributes and with
    paths in all that they may have; and policies, whose ledger is opened by a charge alone.
    """
    models = [case["model"] for case in OLD] + [plain(extra_=node) for node in HOSTILE.values()]
    values = [("model", value) for value in models]
    paths = dict.fromkeys(("path", "_path", "ledger", "name"), "made.db")
    for name, kind in _STORED.items():
        for state in ({}, paths):
            node = {"object": name, "state": state}
            if issubclass(kind, BaseEstimator):
                node = {"estimator": name, "params": {}, "fitted": state}
            values.append(("answer", node))
    jobs = []
    for number, (kind, value) in enumerate(values):
        jobs.append((kind, str(tmp_path / f"{number}.json")))
        Path(jobs[-1][1]).write_text(json.dumps(value))
    with BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "ledger.db"):
        for number, policy in enumerate((LinUCB(privacy="central", bounds_y=(0, 1)), epochs())):
            played(policy).save(tmp_path / f"policy {number}")
            jobs.append(("policy", str(tmp_path / f"policy {number}")))
    list_of_jobs = tmp_path / "jobs"
    list_of_jobs.write_text(json.dumps(jobs))
    command = [sys.executable, "-c", WATCH, str(list_of_jobs)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.strip() == str(len(jobs)), run.stderr[-3000:]


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('code ran')",)


def test_a_forged_answer_in_a_ledger_runs_nothing(tmp_path):
    """Whoever may write a charge into a shared ledger runs no code in policies."""
    path = tmp_path / "team.db"
    for forged in (pickle.dumps(Evil()), b"7", json.dumps(encoded(ssp().fit(X, X[:, 0]))).encode()):
        with BudgetAccountant(9.0, 1e-5, ledger=path):
            policy = played(epochs(), 10)
            copy.deepcopy(policy)  # from now on answers stand in the ledger
            ledger = Database(path, "ledger")
            ((name, _),) = ledger.ask("SELECT object, max(rowid) FROM answers")
            ledger.write("INSERT INTO answers VALUES (?, 0, ?)", name, forged)
            with pytest.raises(PrivacyError, match="cannot be read.*another version"):
                played(policy, 30)


def test_a_forged_policy_of_a_service_runs_nothing(tmp_path):
    policy, path = LinUCB(privacy="central", bounds_y=(0, 1)), tmp_path / "service.sqlite"
    Loop(policy, path)._store.close()
    file = Database(path, "service")
    loop = {"policy": {"tuple": [1, "s.db"], "of": "bandits.Loop"}, "accountants": []}
    for state in (pickle.dumps(Evil()), b"[]", b"\xff", json.dumps(loop).encode()):
        file.write("UPDATE policy SET state = ?", sha256(state).digest() + state)
        with pytest.raises(PrivacyError, match="policy.*Loop.*damaged"):
            Loop(policy, path)
    assert {found.name for found in tmp_path.iterdir()} <= {
        "service.sqlite", "service.sqlite-wal", "service.sqlite-shm",
    }  # fmt: skip


def test_a_policy_of_another_version_is_told(tmp_path):
    path = tmp_path / "policy"
    played(LinUCB(privacy="central", bounds_y=(0, 1))).save(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"version": 4', b'"version": 3'))
    with pytest.raises(ValueError, match="version 3.*the skpriv that wrote it"):
        load(path)
    for damaged in (content[:-9], content.replace(b'"accountants"', b'"accountant"'), b"skpriv"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not JSON|no (saved )?policy|not a file"):
            load(path)


def test_a_policy_goes_on_charging_its_ledger_elsewhere(tmp_path):
    """A process without the accountant that loads it charges the same ledger, as of a pickle."""
    ledger, path = tmp_path / "ledger.db", tmp_path / "policy"
    with BudgetAccountant(3.0, 1e-5, ledger=ledger) as accountant:
        played(epochs(), 10).save(path)
    assert not vars(load(path)).keys() & {"_skpriv_accountants"}  # here the with block decides
    path.write_bytes(path.read_bytes().replace(accountant._home.encode(), b"another process"))
    moved = load(path)
    played(copy.deepcopy(moved), 30)
    assert len(accountant.charges) == 1 and accountant.spent.epsilon > 0.7
    moved.save(path)
    assert load(path).written_accountants() == moved.written_accountants()
    path.write_bytes(path.read_bytes().replace(b'"ledger"', b'"letter"'))
    with pytest.raises(ValueError, match="accountants.*damaged"):
        load(path)


def test_shared_parts_and_orders_of_arrays_are_kept():
    across = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    rng = np.random.RandomState(3)
    value = [across, {"a": (across, b"\0", {1, 2}, slice(1, None))}, rng, rng, np.float64(0.1)]
    again = decoded(parsed(json.dumps(encoded(value, of_policies=True))), of_policies=True)
    assert again[0] is again[1]["a"][0] and again[2] is again[3]
    assert again[0].flags.f_contiguous and again[0].flags.writeable
    assert (again[0] == across).all() and again[1]["a"][1:] == (b"\0", {1, 2}, slice(1, None))
    assert again[2].random_sample() == rng.random_sample() and again[4] == 0.1
    with pytest.raises(TypeError, match="class RandomState.*a file holds"):
        encoded(rng)


def test_no_file_is_written_that_would_not_be_read():
    """A matrix with an infinite number, such as public ranges without an end, was one."""
    with pytest.raises(TypeError, match="infinite"):
        encoded(np.array([[0.0, np.inf]]))
    for kept in (np.array([0.0, np.inf]), np.array([[0.0, np.nan]])):
        np.testing.assert_array_equal(decoded(encoded(kept)), kept)
