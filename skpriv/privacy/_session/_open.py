"""From the name of a privacy model to its session."""

from ...records import as_rows
from ._base import Session
from ._central import CentralSession, ExactSession
from ._local import LocalSession, ShuffleSession
from ._trust import Trust

MODELS: dict[str, type[Session]] = {
    "central": CentralSession,
    "local": LocalSession,
    "none": ExactSession,
    "shuffle": ShuffleSession,
}


def open_session(
    privacy,
    X,
    y,
    budget,
    random_state=None,
    name="session",
    *,
    currency="gdp",
    smallest_share=1.0,
    groups=None,
):
    """Open a session on private rows; the whole budget is charged here, before any row is read.

    Parameters
    ----------
    privacy : {"central", "local", "shuffle", "none"}
        The privacy model. An infinite epsilon is the same as "none".
    X : ndarray or sparse matrix of shape (n_records, n_features), or skpriv.records.Rows
    y : ndarray of shape (n_records,)
        None if X is rows, which have their targets in them.
    budget : Budget
        What one record may lose in the whole session.
    random_state : None, int or RandomState, default=None
        None draws secure noise by OpenDP; anything else draws reproducible noise by NumPy.
    name : str
        Who asks, for reports and accountants.
    currency : {"gdp", "zcdp", "pure"}, default="gdp"
        What the shares divide; a session that selects coordinates needs "zcdp", and one whose
        queries bring pure noise for ``delta=0`` needs "pure".
    smallest_share : float, default=1.0
        The smallest share that will be asked for; too few records for it are refused uncharged.
        0 where no sum is asked for, but a stream.
    groups : Groups, default=None
        Rows that are protected together, such as those of one person; None: each row alone.

    Returns
    -------
    Session

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay; nothing has been read then.
    PrivacyError
        If the guarantee cannot be had, for example ``delta=0`` with Gaussian noise.
    """
    trust = Trust.of(privacy, budget)
    return MODELS[trust.model](
        as_rows(X, y),
        trust.budget,
        random_state,
        name,
        currency=currency,
        smallest_share=smallest_share,
        groups=groups,
    )
