"""Texts that parameters take, for type checkers; that they are these is checked at run time.

A name here is what the public doors are annotated with: an editor offers the choices, and a
misspelt one is an error before anything runs.
"""

from typing import Literal

ConformityScore = Literal["absolute", "signed"]
Estimand = Literal["fitted", "least_squares", "likelihood"]
IntervalMethod = Literal["certified", "asymptotic"]
PrivacyModel = Literal["aggregate", "central", "local", "none", "shuffle"]
Scale = Literal["range", "odds"]
