"""Picture of the regret."""

import numpy as np


class RegretDisplay:
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
        Mean plus and minus 1.96 standard errors; none of a single run.

    Examples
    --------
    >>> from skpriv.bandits import LinearEnvironment, RandomPolicy, RegretDisplay, simulate
    >>> env = LinearEnvironment(n_actions=3, n_features=2)
    >>> result = simulate([RandomPolicy()], env, horizon=100, n_runs=2, random_state=0)
    >>> RegretDisplay.from_result(result).plot().ax_.get_ylabel()
    'cumulated regret'
    """

    def __init__(self, *, regret, rounds, names):
        self.regret = regret
        self.rounds = rounds
        self.names = names

    @classmethod
    def from_result(cls, result):
        """Take the result of :func:`simulate`.

        Parameters
        ----------
        result : Bunch
            Of :func:`simulate`.

        Returns
        -------
        display : RegretDisplay
        """
        return cls(regret=result.regret_, rounds=result.rounds, names=result.names)

    def plot(self, ax=None, *, logarithmic=False):
        """Draw the mean regret of each policy, with its uncertainty.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; None makes a figure.
        logarithmic : bool, default=False
            Whether both axes are, so that slopes are rates of growth.

        Returns
        -------
        display : RegretDisplay
            Itself, with `ax_` and `figure_`.
        """
        if ax is None:
            ax = _import_pyplot(f"{type(self).__name__}.plot").subplots()[1]
        index = _thinned(self.rounds)
        x = self.rounds[index]
        self.lines_, self.bands_ = [], []
        for regret, name in zip(self.regret, self.names, strict=True):
            mean = regret[:, index].mean(axis=0)
            self.lines_.extend(ax.plot(x, mean, label=name))
            if len(regret) > 1:
                half = 1.96 * regret[:, index].std(axis=0, ddof=1) / np.sqrt(len(regret))
                color = self.lines_[-1].get_color()
                self.bands_.append(
                    ax.fill_between(x, mean - half, mean + half, alpha=0.2, color=color)
                )
        if logarithmic:
            ax.set(xscale="log", yscale="log")
        ax.set(xlabel="round", ylabel="cumulated regret")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _thinned(rounds, most=1000):
    """Indices of at most so many rounds; a line of more points looks the same."""
    if len(rounds) <= most:
        return np.arange(len(rounds))
    return np.unique(np.linspace(0, len(rounds) - 1, most).round().astype(int))


def _import_pyplot(caller):
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which comes with the plot extra: "
            'python -m pip install "skpriv[plot]"'
        ) from error
    return pyplot
