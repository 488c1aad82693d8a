"""The promise of releases to the people in the data, and the abilities of each privacy model.

Whom a model asks to be trusted is stated here once, and asked everywhere. No other file decides
anything by a model's name. A model that has not stated its capabilities is refused: nobody is taken
to be trusted by default.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import exp, inf, isinf

from ..._stored import frozen
from ...exceptions import PrivacyError
from ._cost import Budget, Cost
from ._lattice import Devices


@frozen
class Capabilities:
    """The abilities of the sessions of a privacy model.

    Parameters
    ----------
    sees_rows : {"everybody", "curator", "nobody"}
        Who sees a record before noise has been added: "everybody" is no privacy at all, a "curator"
        answers about all records and may choose some of them in secret.
    divides : {"budget", "users"}
        What a share divides: the budget of every record, all of which are in every answer, or the
        users, each of whom is in one answer with the whole budget.
    strength : float
        How little has to be trusted. A combination of releases has the model of its weakest part.
    sentence : str
        What the guarantee is called, with whom it trusts.
    user_sentence : str or None, default=None
        The same for the user of a bandit; None is the same.
    selects : bool, default=False
        Whether somebody can name the largest coordinates of a sum.
    perturbs : bool, default=False
        Whether somebody can run a procedure of many exact sums and release its output with noise.
    amplifies : bool, default=False
        Whether users hide each other, so that only (epsilon, delta) is known of what they pay.
    protects_groups : bool, default=False
        Whether all rows of a group can be protected together.
    batches : bool, default=False
        Whether running sums are released batch by batch, each full and of a public size.
    summed : bool, default=False
        Whether the noisy sum alone is ever seen, because devices add the noise to what nobody can
        look at.
    caveat : str, default=""
        What a guarantee says at its end: what is left if the premise does not hold.

    Attributes
    ----------
    exact : bool
        Whether answers have no noise.
    curator : bool
        Whether somebody who is trusted sees all records.
    same_rows : bool
        Whether all records are in every answer, and shares divide the budget.
    reports : bool
        Whether each user sends one noisy report, which somebody sees as it is.
    alone : bool
        Whether the own report protects a user, whatever all others do.

    Examples
    --------
    >>> from skpriv.privacy import capabilities
    >>> central, local = capabilities("central"), capabilities("local")
    >>> central.selects, central.same_rows, local.selects, local.same_rows
    (True, True, False, False)
    >>> capabilities("unheard-of")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    skpriv.exceptions.PrivacyError: privacy='unheard-of' is no model that has stated ...
    """

    sees_rows: str
    divides: str
    strength: float
    sentence: str
    user_sentence: str | None = None
    selects: bool = False
    perturbs: bool = False
    amplifies: bool = False
    protects_groups: bool = False
    batches: bool = False
    summed: bool = False
    caveat: str = ""

    def __post_init__(self) -> None:
        if self.sees_rows not in ("everybody", "curator", "nobody"):
            raise ValueError(f"sees_rows={self.sees_rows!r} must be everybody, curator or nobody.")
        if self.divides not in ("budget", "users"):
            raise ValueError(f"divides={self.divides!r} must be 'budget' or 'users'.")

    @property
    def exact(self) -> bool:
        """Whether answers have no noise."""
        return self.sees_rows == "everybody"

    @property
    def curator(self) -> bool:
        """Whether somebody who is trusted sees all records."""
        return self.sees_rows != "nobody"

    @property
    def same_rows(self) -> bool:
        """Whether all records are in every answer, and shares divide the budget."""
        return self.divides == "budget"

    @property
    def reports(self) -> bool:
        """Whether each user sends one noisy report, which somebody sees as it is."""
        return self.divides == "users"

    @property
    def alone(self) -> bool:
        """Whether the own report protects a user, whatever all others do."""
        return self.reports and not self.amplifies

    def named(self, unit: str) -> str:
        """The name of the guarantee for a "record", a "person" or a "user".

        Parameters
        ----------
        unit : {"record", "person", "user"}
            What is protected.

        Returns
        -------
        str
            ``user_sentence`` for a user, if there is one, else ``sentence``.
        """
        return self.user_sentence or self.sentence if unit == "user" else self.sentence


_STATED = {
    "aggregate": Capabilities(
        sees_rows="nobody", divides="budget", strength=2.0, protects_groups=True, batches=True,
        summed=True, sentence="differential privacy of sums",
        caveat="those who hide the sum see, together, each record almost as it is",
    ),
    "central": Capabilities(
        sees_rows="curator", divides="budget", strength=1.0, selects=True, perturbs=True,
        protects_groups=True, sentence="differential privacy (trusted curator)",
        user_sentence="joint differential privacy (trusted curator)",
    ),
    "local": Capabilities(
        sees_rows="nobody", divides="users", strength=4.0, sentence="local differential privacy",
    ),
    "none": Capabilities(
        sees_rows="everybody", divides="budget", strength=0.0, selects=True, perturbs=True,
        protects_groups=True, sentence="no privacy",
    ),
    "shuffle": Capabilities(
        sees_rows="nobody", divides="users", strength=3.0, amplifies=True, batches=True,
        sentence="differential privacy (trusted shuffler of each query's reports)",
        user_sentence="differential privacy (trusted shuffler of each batch of reports)",
    ),
}  # fmt: skip


def capabilities(model: str) -> Capabilities:
    """The statement of a privacy model; one that has not is refused.

    Parameters
    ----------
    model : str
        Name of a privacy model, one of `MODELS`.

    Returns
    -------
    Capabilities
        What the sessions of the model state.

    Raises
    ------
    PrivacyError

    Examples
    --------
    >>> from skpriv.privacy import capabilities
    >>> capabilities("local").same_rows, capabilities("central").same_rows
    (False, True)
    """
    if model not in _STATED:
        raise PrivacyError(
            f"privacy={model!r} is no model that has stated whom it trusts: it must be one of "
            f"{', '.join(map(repr, _STATED))}."
        )
    return _STATED[model]


def state(model: str, stated: object) -> None:
    """Record the capabilities of a model, which cannot be changed afterwards.

    Parameters
    ----------
    model : str
    stated : Capabilities
    """
    if not isinstance(stated, Capabilities):
        raise TypeError(
            f"the privacy model {model!r} must state its capabilities: Capabilities(...)"
        )
    if _STATED.setdefault(model, stated) != stated:
        raise ValueError(f"the privacy model {model!r} has stated other capabilities before.")


def models_that(ability: str) -> str:
    """Names of the models with an ability, for error messages: "privacy='central'".

    Parameters
    ----------
    ability : str
        An attribute of `Capabilities` that is true for them.
    """
    found = [n for n, can in _STATED.items() if getattr(can, ability) and not can.exact]
    return f"privacy={' or '.join(map(repr, found))}"


_UNITS = {
    "record": "one record; the number of records is public",
    "person": "one person, with all rows; the number of persons is public",
    "user": (
        "one user, who is in {visits}: context, action and reward; the numbers of rounds are public"
    ),
}
_PERSON = (
    "one person: contexts, actions and rewards of all rounds, of which at most {} are learned "
    "from; the numbers of rounds, and when each person came, are public"
)


@frozen
class Guarantee:
    """The promise of a release, composed from what was charged; ``str()`` says it in a sentence.

    Parameters
    ----------
    model : str
        Name of the privacy model, which says who is trusted. For users of a bandit "central" is
        joint differential privacy: the actions of all others are protected, not the own action.
    costs : tuple of Cost
        What one unit may have paid. Several, where each unit pays one of them: such as the users
        of policies that have no user in common.
    delta : float, default=0.0
        The delta at which `epsilon` is told; it includes the deltas of the costs.
    unit : {"record", "person", "user"}, default="record"
        What is protected.
    neighbours : str, default="replace one"
        Data sets that are hard to tell apart: those that differ in one unit, replaced by any other.
    visits : int, default=1
        Records of one unit, at most; see `visited`.
    devices : Devices or None, default=None
        Where devices add the noise: how many, and how their sum is hidden.
    rounds : int or None, default=None
        Rounds of the person, where a bandit learns from so many rounds of each person at most.

    Attributes
    ----------
    epsilon : float
        Smallest that is known; infinite if nothing is promised.
    private : bool
        Whether anything is promised.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Cost, Guarantee
    >>> half = Guarantee("central", (Cost.from_mu(Budget(1.0, 1e-6).mu / 2**0.5),), 1e-6)
    >>> half + half
    Guarantee(epsilon=1, delta=1e-06, model='central', unit='record')
    >>> print(half + half)
    (epsilon=1, delta=1e-06) differential privacy (trusted curator), replacing one record; the
    number of records is public
    """

    model: str
    costs: tuple[Cost, ...]
    delta: float = 0.0
    unit: str = "record"
    neighbours: str = "replace one"
    visits: int = 1
    devices: Devices | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        # If one cost is infinite, nothing is promised, whoever is trusted.
        if self.private and isinf(self.epsilon):
            object.__setattr__(self, "model", "none")

    @classmethod
    def absent(cls, unit: str = "record") -> "Guarantee":
        """No guarantee: the answers are exact.

        Parameters
        ----------
        unit : {"record", "person", "user"}, default="record"
            What is protected.

        Returns
        -------
        Guarantee
            A guarantee of infinite cost.
        """
        return cls("none", (Cost(gaussian=inf),), unit=unit)

    @classmethod
    def perfect(cls, unit: str = "record") -> "Guarantee":
        """Guarantee of what does not depend on the data.

        Parameters
        ----------
        unit : {"record", "person", "user"}, default="record"
            What is protected.

        Returns
        -------
        Guarantee
            A guarantee of cost 0.
        """
        return cls("local", (Cost(),), unit=unit)

    @classmethod
    def weakest(cls, guarantees: Iterable["Guarantee"]) -> "Guarantee":
        """Guarantee that holds for all units, each of which has one of these guarantees.

        Parameters
        ----------
        guarantees : iterable of Guarantee
            Guarantees of the units; at least one.

        Returns
        -------
        Guarantee
            The costs of all of them, under the model that needs the most trust.
        """
        guarantees = list(guarantees)
        unique = dict.fromkeys(cost for each in guarantees for cost in each.costs)
        model = min((each.model for each in guarantees), key=_strength)
        delta = max(each.delta for each in guarantees)
        unit = guarantees[0].unit
        return cls(model, tuple(unique), delta, unit, devices=_common_devices(guarantees, model))

    @property
    def epsilon(self) -> float:
        """Smallest epsilon that is known at this delta."""
        if not self.private:
            return inf
        # A conversion to mu and back leaves twelve digits of a budget as they were.
        return float(f"{max(cost.epsilon(self.delta) for cost in self.costs):.12g}")

    @property
    def private(self) -> bool:
        """Whether anything is promised."""
        return not capabilities(self.model).exact

    def protecting(self, unit: str) -> "Guarantee":
        """The same guarantee for units that have one record each.

        Parameters
        ----------
        unit : {"record", "person", "user"}
            What is protected.

        Returns
        -------
        Guarantee
            A copy that names this unit.
        """
        return replace(self, unit=unit)

    def of_person(self, rounds: int) -> "Guarantee":
        """The same guarantee for persons, whose cost covers so many rounds each.

        Parameters
        ----------
        rounds : int
            Number of rounds of a person that the cost covers, at least 1.

        Returns
        -------
        Guarantee
            A copy whose unit is a person.
        """
        return replace(self, unit="person", rounds=int(rounds))

    def repeated(self, rounds: int) -> "Guarantee":
        """Guarantee of persons who are in so many releases, each of which has this guarantee.

        Costs add up (adaptive composition), and so do the deltas that releases spend.

        Parameters
        ----------
        rounds : int
            Number of releases that a person is in, at least 1.

        Returns
        -------
        Guarantee
            A guarantee whose costs are added up over the releases.
        """
        return self._grouped(rounds, alone=True).of_person(rounds)

    def visited(self, visits: int) -> "Guarantee":
        """Guarantee of units that have up to so many records each.

        Locally every record pays by itself, and costs add up. Elsewhere records may be in one
        release: a group of m moves it m times as far, which multiplies mu and epsilon by m and rho
        by m^2, and (epsilon, delta) turns into (m epsilon, m exp((m - 1) epsilon) delta) (Dwork and
        Roth 2014, Theorem 2.2; Bun and Steinke 2016, Proposition 27; Dong et al. 2022, Theorem
        2.14). Fewer records are in each of several releases, and sums of squares are smaller.

        Parameters
        ----------
        visits : int
            Largest number of records of a unit, at least 1.

        Returns
        -------
        Guarantee
            A guarantee for all records of a unit together.
        """
        if self.rounds is not None or self.visits != 1 or visits < 1 or visits != int(visits):
            raise ValueError(f"visits={visits!r} must be an int of at least 1, asked for once.")
        if visits == 1 or not self.private:
            return self
        return replace(self._grouped(visits, capabilities(self.model).alone), visits=int(visits))

    def _grouped(self, m: int, alone: bool) -> "Guarantee":
        """Guarantee of units that have m records each; see `_of_group`."""
        costs = tuple(_of_group(cost, m, alone) for cost in self.costs)
        return replace(self, costs=costs, delta=self._free_delta + max(c.delta for c in costs))

    def __add__(self, other: "Guarantee") -> "Guarantee":
        """Guarantee of units that paid both costs; Gaussian releases share the larger delta."""
        if not isinstance(other, Guarantee):
            return NotImplemented
        sums = dict.fromkeys(mine + its for mine in self.costs for its in other.costs)
        delta = max(self._free_delta, other._free_delta) + self._spent_delta + other._spent_delta
        model = min(self.model, other.model, key=_strength)
        devices = _common_devices((self, other), model)
        return replace(self, model=model, costs=tuple(sums), delta=delta, devices=devices)

    @property
    def _spent_delta(self) -> float:
        return max(cost.delta for cost in self.costs)

    @property
    def _free_delta(self) -> float:
        """Part of delta that approximate releases leave to the others."""
        return max(0.0, self.delta - self._spent_delta)

    def __str__(self) -> str:
        if not self.private:
            return "no privacy: the answers are exact"
        if not any(any(cost.as_tuple()) for cost in self.costs):
            return "perfect privacy: nothing that is released depends on the data"
        numbers = f"(epsilon={self.epsilon:.6g}, delta={self.delta:g})"
        can = capabilities(self.model)
        kind = can.named("user" if self.rounds else self.unit)
        caveat = can.caveat
        if self.devices is not None:
            kind = f"{kind} ({self.devices.premise})"
            caveat = self.devices.caveat
        unit = _UNITS[self.unit] if self.rounds is None else _PERSON.format(self.rounds)
        visits = f"at most {self.visits} rounds" if self.visits > 1 else "one round"
        unit = unit.format(visits=visits)
        return f"{numbers} {kind}, replacing {unit}" + (caveat and f"; {caveat}")

    def __repr__(self) -> str:
        return (
            f"Guarantee(epsilon={self.epsilon:g}, delta={self.delta:g}, model={self.model!r}, "
            f"unit={self.unit!r})"
        )


def _strength(model: str) -> float:
    return capabilities(model).strength


def _common_devices(guarantees: Iterable["Guarantee"], model: str) -> Devices | None:
    """The devices of all guarantees of this model, if they are the same ones."""
    found = {each.devices for each in guarantees if each.model == model}
    return found.pop() if len(found) == 1 else None


def _of_group(cost: Cost, m: int, alone: bool) -> Cost:
    """Cost of a unit with m records; of reports that protect by themselves (`alone`) a sum."""
    if alone:
        return Cost(*(m * part for part in cost.as_tuple()))
    squares = ("gaussian", "concentrated", "selected", "pure_squared", "pure_gaussian")
    growth = exp((m - 1) * cost.approximate) if cost.delta else 1.0
    return Cost(
        **{name: m**2 * getattr(cost, name) for name in squares},
        pure=m * cost.pure,
        approximate=m * cost.approximate,
        delta=min(1.0, m * growth * cost.delta),
    )


@frozen
class Trust:
    """A privacy model and its budget, as they are meant: an infinite epsilon is no privacy.

    Attributes
    ----------
    model : str
        Name of the privacy model; one that has not stated its capabilities is refused.
    budget : Budget
        Infinite where there is no privacy.
    can : Capabilities
        What the model can do.
    exact : bool
        Whether answers have no noise.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Trust
    >>> Trust.of("local", Budget(float("inf"), 1e-6)) == Trust.of("none", Budget(1.0, 1e-6))
    True
    >>> trust = Trust.of("shuffle", Budget(1.0, 1e-6))
    >>> trust.exact, trust.can.curator, trust.can.divides
    (False, False, 'users')
    >>> print(trust.guarantee("user"))
    (epsilon=1, delta=1e-06) differential privacy (trusted shuffler of each batch of reports),
    replacing one user, who is in one round: context, action and reward; the numbers of rounds are
    public
    """

    model: str
    budget: Budget

    def __post_init__(self) -> None:
        capabilities(self.model)  # a model that is not known is refused

    @property
    def can(self) -> Capabilities:
        """What the model is able to do."""
        return capabilities(self.model)

    @property
    def exact(self) -> bool:
        """Whether answers are exact, and nothing is private."""
        return self.can.exact

    @classmethod
    def of(cls, privacy: str, budget: Budget) -> "Trust":
        """Trust that the parameters of an estimator or a policy stand for."""
        absent = cls.absent(privacy, budget.epsilon)
        return cls("none", Budget(inf)) if absent else cls(privacy, budget)

    @staticmethod
    def absent(privacy: str, epsilon: float) -> bool:
        """Whether these parameters, which may be invalid, stand for no privacy."""
        return privacy == "none" or epsilon == inf

    def price(self, currency: str = "gdp") -> Cost:
        """The whole charge of a session or stream that divides this currency.

        Nothing is free: a budget that is too small for Gaussian noise has no price in it.
        """
        if self.can.amplifies:  # of shuffled reports only (epsilon, delta) is known
            return Cost.from_budget(self.budget)
        if currency == "pure":
            return Cost.from_epsilon(self.budget.epsilon)
        check_gaussian(self.budget)
        # A rho may be spent on selections, which cost at least as much as Gaussian noise in every
        # currency.
        return Cost.from_mu(self.budget.mu) if currency == "gdp" else Cost(selected=self.budget.rho)

    def times_needed(self, times: float) -> tuple[float, float]:
        """How many times the records, or epsilon, make the effective records so many times larger.

        Under a curator these are in proportion to mu, of which epsilon is no multiple at a given
        delta. In the other models they grow as the square root of the records.
        """
        if not self.can.same_rows:
            return times**2, times
        larger = Budget.from_mu(times * self.budget.mu, self.budget.delta)
        return times, larger.epsilon / self.budget.epsilon

    def guarantee(self, unit: str = "record", currency: str | None = None) -> Guarantee:
        """The guarantee that will be given; without a currency it is the budget alone."""
        if self.exact:
            return Guarantee.absent(unit)
        cost = Cost.from_budget(self.budget) if currency is None else self.price(currency)
        return Guarantee(self.model, (cost,), self.budget.delta, unit)


def check_gaussian(budget: Budget) -> None:
    """Refuse a budget that leaves no room for Gaussian noise.

    Raises
    ------
    PrivacyError
    """
    if not budget.mu > 0.0:
        raise PrivacyError(
            f"delta={budget.delta} leaves no room for Gaussian noise at epsilon={budget.epsilon}: "
            "pass delta in (0, 1), for example delta=1e-6, and epsilon > 0. Only reports by a "
            "codebook, of privacy='local', need no delta."
        )
