"""LinearRegression beside the errors that the author of AdaSSP recorded (Wang 2018, UAI).

Run: python benchmarks/recorded_adassp.py CLONE [--epsilon 0.1 1] [--fits 2000] [--most 50000]

CLONE is a clone of github.com/yuxiangw/optimal_dp_linear_regression, which has the tables and
``code/exp_results.mat``, the recorded errors: mean square error over ten folds of targets over
their largest value, rows of standardised features scaled to norm 1, delta 1e-6. A table counts
where its trivial and its non-private error come out as recorded, and least squares explains a
twentieth of the target. Numbers are errors over that of the mean, the same for both.
"""

import argparse
import io
import subprocess
from collections import Counter

import numpy as np
from _record import record
from scipy.io import loadmat
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skpriv.linear_model import LinearRegression, SSPRegressor

# In the order of the record, in which there are more; None cannot be read or has no signal
FOLDERS = (
    "3droad airfoil autompg autos bike breastcancer concrete concreteslump elevators energy "
    "fertility forest gas housing kin40k machine parkinsons pendulum pol protein pumadyn32nm servo "
    "skillcraft sml solar stock tamielectric wine yacht"
).split()
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TRIVIAL, NON_PRIVATE, ADASSP = 0, 1, 6  # rows of the record
# File, column of the target, columns that are no features, and the scale of the target: the scripts
# beside the tables say it
TABLES = {
    "airfoil": ("airfoil_self_noise.dat.txt", -1, (), None),
    "autompg": ("auto-mpg.txt", 0, (), None),
    "autos": ("imports-85.data.txt", -1, (), np.log),
    "bike": ("hour.csv", -1, (0,), np.log),
    "breastcancer": ("wpbc.data.txt", 2, (-1,), None),
    "concrete": ("Concrete_Data.txt", -1, (), None),
    "concreteslump": ("slump_test.data.txt", -4, (-3, -2, -1), None),
    "elevators": ("elevators.data elevators.test", -1, (), np.log),
    "energy": ("energy.txt", -2, (-1,), None),
    "fertility": ("fertility_Diagnosis.txt", -2, (), None),
    "housing": ("housing.txt", -1, (), None),
    "machine": ("machine.data.txt", -2, (-1,), np.log),
    "parkinsons": ("parkinsons.txt", 5, (4,), None),
    "pendulum": ("pendulum_all.mat", -1, (), None),
    "pol": ("pol_all.mat", -1, (), None),
    "protein": ("CASP.csv", 0, (), np.log1p),
    "servo": ("servo.data.txt", -1, (), np.log),
    "skillcraft": ("SkillCraft.txt", 12, (), np.log),
    "sml": ("sml.txt", 11, (), None),
    "solar": ("flare.data2.txt", -1, (), None),
    "stock": ("stock.txt", 3, (), None),
    "wine": ("winequality-red.csv", -2, (), None),
    "yacht": ("yacht_hydrodynamics.data.txt", -1, (), np.log),
}
MODELS = {
    "LinearRegression": (LinearRegression, {"fit_intercept": False}),
    "with an intercept": (LinearRegression, {}),
    "SSPRegressor": (SSPRegressor, {"fit_intercept": False}),
}


def content(clone, path):
    """Bytes of a file of the clone, checked out or not."""
    command = ["git", "-C", clone, "show", f"HEAD:{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def cells(raw):
    """Numbers of a text file, of the lines that have the most usual number of them."""
    lines = raw.decode("latin1").translate(dict.fromkeys(map(ord, ",;\t"), " ")).splitlines()
    rows = []
    for line in lines:
        try:
            rows.append([np.nan if word in ("?", "NA") else float(word) for word in line.split()])
        except ValueError:  # a heading
            continue
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return np.array([row for row in rows if len(row) == width])


def read(clone, name):
    """Rows of norm 1 and targets in [-1, 1] of a table."""
    files, target, others, scale = TABLES[name]
    parts = []
    for file in files.split():
        raw = content(clone, f"data/{name}/{file}")
        if file.endswith(".mat"):
            inside = loadmat(io.BytesIO(raw))
            parts.append(next(v for k, v in inside.items() if not k.startswith("_")).astype(float))
        else:
            parts.append(cells(raw))
    table = np.vstack(parts)
    y = table[:, target] if scale is None else scale(table[:, target])
    width = table.shape[1]
    X = np.nan_to_num(np.delete(table, [column % width for column in (target, *others)], axis=1))
    y = np.nan_to_num(y - np.nanmean(y))
    deviation = X.std(axis=0, ddof=1)
    X = (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
    return X, y / np.abs(y).max()


def error(make, X, y, repetitions=1):
    """Mean square error over ten folds."""
    errors = []
    for repetition in range(repetitions):
        folds = KFold(10, shuffle=True, random_state=repetition).split(X)
        for number, (train, test) in enumerate(folds):
            model = make(1000 * repetition + number).fit(X[train], y[train])
            errors.append(np.mean((model.predict(X[test]) - y[test]) ** 2))
    return float(np.mean(errors))


def main():
    """Fit, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--fits", type=int, default=2000, help="rows that are fitted more often")
    parser.add_argument("--most", type=int, default=50_000, help="rows of the largest table")
    args = parser.parse_args()
    recorded = loadmat(io.BytesIO(content(args.clone, "code/exp_results.mat")))["results_err"]
    numbers = {}
    for name in TABLES:
        X, y = read(args.clone, name)
        known = recorded[:, :, FOLDERS.index(name)]
        trivial, non_private = known[TRIVIAL, 0], known[NON_PRIVATE, 0]
        mean = float(np.mean(y**2))
        line = error(lambda _: Ridge(alpha=1.0, fit_intercept=False), X, y)
        alike = abs(mean / trivial - 1.0) < 0.02 and abs(line / non_private - 1.0) < 0.08
        if not alike or len(y) > args.most:
            print(f"{name}: left out")
            continue
        for epsilon in args.epsilon:
            cell = {"n": len(y), "d": X.shape[1], "least squares": line / mean}
            cell["AdaSSP"] = known[ADASSP, EPSILONS.index(epsilon)] / trivial
            for label, (Model, options) in MODELS.items():
                public = {"epsilon": epsilon, "data_norm": 1.0, "bounds_y": (-1.0, 1.0), **options}
                repetitions = max(1, min(5, args.fits // len(y)))
                found = error(
                    lambda seed, M=Model, p=public: M(**p, random_state=seed), X, y, repetitions
                )
                cell[label] = found / mean
            numbers[f"{name}, {epsilon:g}"] = cell
            words = ", ".join(
                f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in cell.items()
            )
            print(f"{name} at {epsilon:g}: {words}", flush=True)
    for epsilon in args.epsilon:
        of = [cell for key, cell in numbers.items() if key.endswith(f", {epsilon:g}")]
        for label in MODELS:
            ahead = sum(cell[label] <= cell["AdaSSP"] for cell in of)
            worst = max(cell[label] for cell in of)
            average = np.mean([cell[label] for cell in of])
            print(f"{epsilon:g}, {label}: ahead or equal on {ahead} of {len(of)}, "
                  f"mean {average:.3f}, worst {worst:.3f}")  # fmt: skip
    record("recorded_adassp", numbers)


if __name__ == "__main__":
    main()
