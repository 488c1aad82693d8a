"""Picture of the regret."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ..._estimation._intervals import two_sided_quantile
from ..._parameters import validated
from ..._printing import Display


@dataclass(kw_only=True, eq=False, repr=False)
class RegretDisplay(Display):
    """Cumulated regret over the rounds, one line a policy.

    Make it with `from_result`; it holds arrays only.

    Parameters
    ----------
    regret : ndarray of shape (n_policies, n_runs, n_rounds)
        Cumulated regret.
    rounds : ndarray of shape (n_rounds,)
        Rounds of the last axis.
    names : list of str
        Labels of the lines.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the lines.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Mean regret.
    bands_ : list of matplotlib PolyCollection
        Mean with its interval at level .95; none of a single run.

    Examples
    --------
    >>> from skpriv.bandits import LinearEnvironment, RandomPolicy, RegretDisplay, simulate
    >>> env = LinearEnvironment(n_actions=3, n_features=2)
    >>> result = simulate([RandomPolicy()], env, horizon=100, n_runs=2, random_state=0)
    >>> RegretDisplay.from_result(result).plot().ax_.get_ylabel()
    'cumulated regret'
    """

    regret: Any
    rounds: Any
    names: Any

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Take the result of :func:`simulate`.

        Parameters
        ----------
        result : Bunch
            Result of :func:`simulate`.

        Returns
        -------
        display : RegretDisplay
        """
        return cls(regret=result.regret_, rounds=result.rounds, names=result.names)

    @validated
    def plot(
        self,
        ax: Any = None,
        *,
        scale: Literal["log", "loglog", "linear"] = "log",
        legend: bool = True,
    ) -> Self:
        """Draw the mean regret of each policy, with its uncertainty.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.
        scale : {"log", "loglog", "linear"}, default="log"
            Scale of the regret: logarithmic, on which good policies can be told apart; of the
            rounds too, so that slopes are rates of growth; or linear.
        legend : bool, default=True
            Whether to name the curves beside the axes, in their order at the last round. False
            leaves that to the caller, who may have several axes: `lines_` have the labels.

        Returns
        -------
        display : RegretDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._axes(ax, figsize=(7.0, 3.6))
        index = _thinned(self.rounds, scale == "loglog")
        x, means = self.rounds[index], self.regret[:, :, index].mean(axis=1)
        self.lines_, self.bands_ = [], []
        for runs, mean, name in zip(self.regret[:, :, index], means, self.names, strict=True):
            self.lines_.extend(ax.plot(x, mean, label=name, linewidth=1.5))
            if len(runs) > 1:
                half = two_sided_quantile(0.95) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
                color = self.lines_[-1].get_color()
                ends = mean - half, mean + half
                self.bands_.append(ax.fill_between(x, *ends, alpha=0.2, color=color, linewidth=0))
        self._scale(ax, scale, x, means)
        if legend:
            order = np.argsort(-means[:, -1])
            ax.legend(
                [self.lines_[i] for i in order], [self.names[i] for i in order],
                loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False,
            )  # fmt: skip
        return self._drawn(ax)

    @staticmethod
    def _scale(ax, scale, x, means):
        ax.set(xlabel="round", ylabel="cumulated regret")
        if scale != "linear":
            ax.set_yscale("log")
            start = means[:, np.searchsorted(x, 0.01 * x[-1])]  # before it is little to see
            lowest = start[start > 0.0].min(initial=np.inf)
            if scale == "log" and np.isfinite(lowest):
                ax.set_ylim(bottom=lowest)
        if scale == "loglog":
            ax.set_xscale("log")


def _thinned(rounds, logarithmic, most=1000):
    """Indices of at most so many rounds; a line of more points looks the same."""
    if len(rounds) <= most:
        return np.arange(len(rounds))
    if logarithmic:
        places = np.geomspace(1.0, len(rounds), most) - 1.0
        return np.unique(places.round().astype(int))
    return np.unique(np.linspace(0, len(rounds) - 1, most).round().astype(int))
