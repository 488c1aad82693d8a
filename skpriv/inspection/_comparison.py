"""Several models side by side, as tables of papers show them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._parameters import Level, validated
from .._printing import Exported, Table, aligned, installed
from ._inference import Inference, inference
from ._units import INTERCEPT


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Exported):
    """Coefficients of several models side by side, with standard errors below them.

    Made by :func:`compare_models`; it prints as a table, in HTML too.

    Parameters
    ----------
    models : dict of str to Inference
        The coefficients of each model, by its name.
    """

    models: dict[str, Any]

    def to_frame(self) -> Any:
        """Estimates and standard errors as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame of shape (n_coefficients, 2 * n_models)
            Its columns are pairs of a model and "estimate" or "std_error". What a model does not
            have is NaN.
        """
        pd = installed("pandas", "data")
        columns = {
            (name, number): pd.Series(getattr(found, number), index=found.names)
            for name, found in self.models.items()
            for number in ("estimate", "std_error")
        }
        return pd.DataFrame(columns, index=self.names)

    @property
    def names(self) -> list[str]:
        """Names of the coefficients of any model, the intercept last."""
        names = dict.fromkeys(name for one in self.models.values() for name in one.names)
        return sorted(names, key=INTERCEPT.__eq__)

    def _column(self, found: Inference) -> dict[str, tuple[str, str]]:
        """Cells of a model, by name: the estimate and the standard error below it."""
        error = found.std_error
        values = map(str.strip, aligned(found.estimate, error))
        errors = map(str.strip, aligned(error, error))
        return {
            name: (value, f"({other})" if other != "-" else "")
            for name, value, other in zip(found.names, values, errors, strict=True)
        }

    def _tables(self) -> list[Table]:
        columns = [self._column(found) for found in self.models.values()]
        rows = []
        for name in self.names:
            cells = (column.get(name, ("", "")) for column in columns)
            values, errors = zip(*cells)
            rows += [(name, *values), ("", *errors)]
        results = self.models.values()
        units = {"Persons" if found.unit == "person" else "Records" for found in results}
        rows.append(("/".join(sorted(units)), *(f"{found.law.n:,}" for found in results)))
        rows.append(("Privacy", *(found.budget_text for found in results)))
        statistics = [
            {
                one.name: aligned([one.value], [10.0 * one.std_error])[0]
                for one in found.statistics or ()
                if one.is_resolved
            }
            for found in results
        ]
        for name in dict.fromkeys(name for each in statistics for name in each):
            rows.append((name, *(each.get(name, "") for each in statistics)))
        return [Table(("", *self.models), rows)]

    def _notes(self) -> Iterator[str]:
        yield (
            "Standard errors are in brackets below the estimates. They count the noise of privacy."
        )
        for name, found in self.models.items():
            yield f"{name}: {found.estimand}."
        if any(found.law.compared for found in self.models.values()):
            yield (
                "Each fitted line or curve clips in its own way. Coefficients are comparable where "
                "each fit declares least_squares or likelihood as its estimand."
            )
        references = {
            f"{column}: {reference}"
            for found in self.models.values()
            for column, (reference, _) in found.lists.items()
        }
        if references:
            yield f"Reference levels: {'; '.join(sorted(references))}."


@validated
def compare_models(models: Any, *, confidence_level: Level = 0.95) -> ModelComparison:
    """Show the coefficients of several fitted models side by side.

    Parameters
    ----------
    models : mapping of str to estimator or Inference, or list of these, or one
        Fitted models as for :func:`inference`, or what it returned. Those of a list are named
        (1), (2) and so on.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals, where `inference` is called.

    Returns
    -------
    ModelComparison
        It prints as a table. ``to_latex()``, ``to_markdown()`` and ``to_frame()`` return it in
        other forms.

    Notes
    -----
    **Privacy guarantee**: that of the fits together. The table costs nothing, but each of the fits
    did: a ledger adds up what several fits of the same rows cost.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import compare_models
    >>> from skpriv.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(20_000, 2))
    >>> y = X @ [1.0, 0.5] + rng.normal(size=20_000)
    >>> options = {"bounds_X": (-1, 1), "bounds_y": (-5, 5), "random_state": 0}
    >>> short = LinearRegression(epsilon=0.5, **options).fit(X[:, :1], y)
    >>> long = LinearRegression(epsilon=0.5, **options).fit(X, y)
    >>> table = compare_models({"short": short, "long": long})
    >>> table.names
    ['x0', 'x1', 'intercept']
    """
    if not isinstance(models, Mapping):
        models = models if isinstance(models, list | tuple) else [models]
        models = {f"({place})": model for place, model in enumerate(models, 1)}
    if not models:
        raise ValueError("models must have at least one fitted model.")
    results = {
        str(name): model if isinstance(model, Inference) else inference(
            model, confidence_level=confidence_level
        )
        for name, model in models.items()
    }  # fmt: skip
    return ModelComparison(results)
