"""What got noise in a run, the same run with one record replaced, and what that costs."""

import sqlite3
from contextlib import closing

import numpy as np

from skpriv.privacy import NoiseSource

ADD = NoiseSource.add


def record_noise(monkeypatch, tape=None):
    """Lists of (exact value, scale of its noise) and of what is released, from now on.

    With a tape of another run its answers are released: then nothing but the exact values differs.
    """
    exact, told = [], []

    def recorded(self, value, noise):
        answer = ADD(self, value, noise) if tape is None else tape[len(told)]
        exact.append((np.array(value, dtype=float), noise.scale))
        told.append(answer)
        return answer

    monkeypatch.setattr(NoiseSource, "add", recorded)
    return exact, told


def losses(first, second):
    """Squared Gaussian loss of each answer, between two runs of the same public scales."""
    assert [scale for _, scale in first] == [scale for _, scale in second]
    return [
        float(((a - b) ** 2).sum()) / scale**2
        for (a, scale), (b, _) in zip(first, second, strict=True)
    ]


def numbered_answers(folder):
    """Answers of a policy and all of its copies, by the name of the object and their number."""
    (file,) = folder.glob("*.answers")
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT object, number, answer FROM answers WHERE number >= 0"
        found = connection.execute(query).fetchall()
    return {
        (name.split("/", 1)[1], number): np.frombuffer(answer) for name, number, answer in found
    }


def loss_of_copies(first, second, scale):
    """Squared Gaussian loss of all answers of two families of copies."""
    assert first.keys() == second.keys()
    return sum(float(((first[key] - second[key]) ** 2).sum()) for key in first) / scale**2
