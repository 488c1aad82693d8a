"""Procedures that read all records at once and release one perturbed output."""

from abc import ABC, abstractmethod


class Procedure(ABC):
    """A function of all the records whose output has a bounded l2 sensitivity.

    For algorithms whose every step reads data but whose output alone is released, such as gradient
    descent with output perturbation. Only a curator can run one.

    Attributes
    ----------
    name : str
        What the privacy report calls it.
    norm : str
        Norm in which the sensitivity is measured.
    sensitivity : float
        Largest change of the output when one record is replaced, rounded up.
    """

    norm = "l2"

    @property
    @abstractmethod
    def name(self) -> str:
        """What the privacy report calls it."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of the output when one record is replaced, rounded up."""

    @abstractmethod
    def run(self, X, y):
        """Output on all the records, for any input.

        Parameters
        ----------
        X : ndarray of shape (n_records, n_features)
        y : ndarray of shape (n_records,)

        Returns
        -------
        ndarray
        """
