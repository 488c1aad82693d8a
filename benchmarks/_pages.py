"""Writes the tables of the documentation that are made of records alone.

Run: python benchmarks/_pages.py

A page marks such a table by a comment in the line before it, ``<!-- table: NAME -->``; NAME is a
line of `TABLES` here. A test compares what the page shows with what the record gives, header and
all, so that neither can change without the other.
"""

import json
import re
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
MARK = re.compile(r"<!-- table: ([\w ]+) -->\n((?:\|.*\n)*)")


def numbers_of(name):
    """The numbers of a record."""
    return json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))["numbers"]


def written(header, rows):
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return (
        "".join("| " + " | ".join(line) + " |\n" for line in lines)
        .replace("| --- ", "|---")
        .replace("|--- |\n", "|---|\n")
    )


def part(value):
    """A part of 1, in three digits and without the 0 before them."""
    return f"{value:.3f}".replace("0.", ".", 1)


def with_error(runs):
    """Mean and standard error of parts of 1."""
    return f"{part(np.mean(runs))} ± {part(np.std(runs, ddof=1) / np.sqrt(len(runs)))}"


def whole_with_error(runs):
    """Mean and standard error, in whole numbers."""
    return f"{np.mean(runs):,.0f} ± {np.std(runs, ddof=1) / np.sqrt(len(runs)):,.0f}"


def bandits():
    """Policies over many environments: a row for epsilon 1, and one for epsilon 4."""
    open_ones = ("LinUCB, not private", "Thompson, not private", "Vowpal Wabbit, not private")
    ours = ("LinUCB", "LinSquareCB", "SquareCB", "EpochGreedy", "elimination")
    header = ["T=20,000, epsilon 1 then 4", "random", "not private: LinUCB, Thompson, VW", *ours]
    rows = []
    for world, groups in numbers_of("bandits").items():
        means = {name: f"{found['mean']:,.0f}" for name, found in groups.get("", {}).items()}
        first = [
            world,
            means.get("random", ""),
            ", ".join(means[name] for name in open_ones if name in means),
        ]
        for epsilon in ("epsilon 1", "epsilon 4") if "epsilon 1" in groups else ():
            found = [groups[epsilon][name] for name in ours]
            rows.append([*first, *(f"{one['mean']:,.0f} / {one['worst']:,.0f}" for one in found)])
            first = ["", "", ""]
    return written(header, rows)


TARGETS = {0.5: ".11", 1.0: ".055", 2.0: ".03", 5.0: ".015", 10.0: ".012"}  # at 10,000 rounds


def fliphat(name="bandit_fliphat"):
    """Fractions of random's regret against rounds."""
    found = numbers_of(name)["rounds"]
    aims = TARGETS if name == "bandit_fliphat" else {}
    header = ["epsilon", *(f"T={rounds:,}" for rounds in found["rounds"])]
    rows = [
        [f"{epsilon:g}".replace("0.", "."), *map(with_error, np.transpose(runs)),
         *(aims[epsilon] for _ in range(bool(aims)))]
        for epsilon, runs in zip(found["epsilons"], found["fractions"])
    ]  # fmt: skip
    return written([*header, "target at 10,000"] if aims else header, rows)


def _swept(first, tables, label):
    header = [first, *(f"epsilon {one}" for one in (".5", "1", "5"))]
    rows = [
        [label(name, value), *map(with_error, runs)]
        for name, found in tables.items()
        for value, runs in zip(found["values"], found["fractions"])
    ]
    return written(header, rows)


def fliphat_sizes():
    """Fractions of random's regret against d, s* and K."""
    sizes = numbers_of("bandit_fliphat")["sizes"]
    return _swept(" ", sizes, lambda name, value: f"{name}={value:,}".replace("*", "\\*"))


def fliphat_clipping():
    """The same against the bound of an entry."""
    tables = dict([next(iter(numbers_of("bandit_fliphat")["clipping"].items()))])
    return _swept("`data_max`", tables, lambda name, value: f"{value:g}".replace("0.", "."))


def fliphat_guess():
    """The same against the number of coefficients to keep."""
    found = numbers_of("bandit_fliphat_guess")
    header = ["coefficients to keep", *(f"epsilon {epsilon:g}" for epsilon in found["epsilons"])]
    columns = [map(with_error, of_guesses) for of_guesses in found["fractions"]]
    return written(
        header, [[str(guess), *cells] for guess, *cells in zip(found["guesses"], *columns)]
    )


# Rows of a page, and the names of the records; the policies of the library to begin with are bold.
LINUCB = {
    "LinUCB, not private (textbook width)": "LinUCB, textbook",
    "LinUCB, not private (one posterior deviation)": "LinUCB, one posterior deviation",
    "published widths: local": "published widths, local",
    "published widths: joint (tree)": "published widths, joint (tree)",
    "published widths: shuffle, amplified": "published widths, shuffle, amplified",
    "published widths: aggregate (shared sum)": "published widths, shared sum",
    "certified: local": "certified, local",
    "certified: joint": "certified, joint",
    "certified: shuffle, amplified": "certified, shuffle, amplified",
    "certified: aggregate (shared sum)": "certified, shared sum",
    "**asymptotic: local**": "asymptotic, local",
    "**asymptotic: joint**": "asymptotic, joint",
    "asymptotic: shuffle, amplified": "asymptotic, shuffle, amplified",
    "asymptotic: aggregate (shared sum)": "asymptotic, shared sum",
    "`OnlineLinUCB`: Maler": "OnlineLinUCB, Maler",
    "`OnlineLinUCB`: descent": "OnlineLinUCB, OGD",
    "its published reports, noisy (x, y): descent": "OnlineLinUCB, OGD, faithful",
}


def linucb():
    """LinUCB under every kind of trust, of the record with most trials."""
    found = {**numbers_of("linucb_comparison"), **numbers_of("linucb_comparison_part")}
    rows = [
        [label, *(whole_with_error(found[f"{name}, {epsilon}"]) for epsilon in ("0.2", "1", "10"))]
        for label, name in LINUCB.items()
    ]
    return written(["policy", "epsilon .2", "1", "10"], rows)


def square_cb():
    """Fractions of random's regret against the number of features."""
    found = numbers_of("bandit_square_cb")
    names = ("improper descent", "SSP", "improper descent, not private")
    rows = [
        [f"{d:,}", *(f"{part(cells[name][0])} ± {part(cells[name][1])}"
                     if name in cells else "not run"
                     for name in names)]
        for d, cells in zip(found["features"], found["mean and standard error"])
    ]  # fmt: skip
    return written(["d", *names], rows)


ELIMINATION = {
    "random": "random",
    "elimination, re-weighted, asymptotic": "elimination, re-weighted",
    "elimination, re-weighted, certified": "elimination, re-weighted, certified",
    "elimination, re-weighted, posterior (default)": "elimination, re-weighted, posterior",
    "elimination, SSP, asymptotic": "elimination, SSP",
    "elimination, layered, certified": "elimination, layered",
    "SquareCB, re-weighted": "SquareCB, re-weighted",
    "LinUCB, certified": "LinUCB, certified",
    "LinUCB, asymptotic": "LinUCB, asymptotic",
}


def elimination():
    """Regret against T, and its slope."""
    from bandit_elimination import slope

    found, rows = numbers_of("bandit_elimination"), []
    for label, name in ELIMINATION.items():
        row = [label]
        for privacy, sizes in (("local", (1e5, 1e6, 1e7)), ("central", (1e7,))):
            rounds = np.array(found[privacy]["rounds"])
            runs = found[privacy]["regret"][found[privacy]["names"].index(name)]
            mean = np.mean(runs, axis=0)
            row += [f"{mean[np.abs(rounds - size).argmin()]:,.0f}" for size in sizes]
            shown = round(slope(rounds, mean), 2) + 0.0  # and never -0
            row.append(f"{shown:.2f}".replace("0.", ".", 1))
        rows.append(row)
    header = ["regret", "local, T=1e5", "1e6", "1e7", "slope", "joint, T=1e7", "slope"]
    return written(header, rows)


TABLES = {
    "bandits": bandits,
    "fliphat": fliphat,
    "fliphat guess": fliphat_guess,
    "fliphat uniform": lambda: fliphat("bandit_fliphat_uniform"),
    "fliphat sizes": fliphat_sizes,
    "fliphat clipping": fliphat_clipping,
    "linucb": linucb,
    "elimination": elimination,
    "square_cb": square_cb,
}


def pages():
    """Pages with a table of a record."""
    return [page for page in sorted(DOCS.rglob("*.md")) if MARK.search(page.read_text("utf-8"))]


def main():
    """Write all of them again."""
    for page in pages():
        text = page.read_text("utf-8")
        new = MARK.sub(lambda found: f"<!-- table: {found[1]} -->\n{TABLES[found[1]]()}", text)
        page.write_text(new, encoding="utf-8")
        print(f"{page.name}: {'written again' if new != text else 'as recorded'}")


if __name__ == "__main__":
    main()
