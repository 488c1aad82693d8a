"""What whoever watches a service may ask: numbers that say nothing about any event."""

from typing import Any


class Watched:
    """Mixin of `Loop`: how many events, what went wrong, what was promised, and what is earned."""

    policy: Any
    _clock: Any
    _lock: Any
    _refresh: Any
    _store: Any
    _value: Any
    _value_budget: Any
    _version: Any

    @property
    def n_events(self) -> int:
        """Number of events that were ranked."""
        with self._store.looking() as held:
            return held.last()

    @property
    def n_learned(self) -> int:
        """Number of events that the policy has learned.

        With ``in_order=False``, of those in whose places it has learned: how many rewards came is
        private.
        """
        with self._store.looking() as held:
            return held.first_open() - 1

    @property
    def troubles(self) -> list[tuple[float, str]]:
        """What went wrong in learning, in any worker: time and sentence, the last one last.

        Nothing in it depends on a value of the data.
        """
        with self._store.looking() as held:
            return held.troubles()

    @property
    def guarantee(self) -> Any:
        """What those who come are promised: by the policy and the running value together."""
        with self._lock:
            own = self.policy.guarantee
            return own if self._value is None else own + self._value.guarantee

    def value(self, *, confidence_level: float = 0.95) -> Any:
        """Mean reward of the events that were learned, under differential privacy.

        Rewards are erased when they are learned. This is what remains of them: a noisy running sum,
        which is read after 20, 40, ... events and later after 1.05 times as many each, so that
        asking costs nothing.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95

        Returns
        -------
        PrivateValue or None
            Named tuple (value, low, high, noise_share, missing); None before the first read.
        """
        with self._lock, self._store.transaction() as held:
            self._refresh(held)
            if self._value_budget is None:
                raise ValueError("this service keeps no value: pass value_epsilon.")
            return None if self._value is None else self._value.read(confidence_level)

    def status(self) -> dict[str, Any]:
        """Numbers for whoever watches the service; none is about what is in an event.

        Returns
        -------
        status : dict
            ``events``, ``learned`` (as `n_learned`), ``waiting`` (all others), ``version`` (times
            that the policy was saved), ``rounds_until_update``, ``troubles`` (their number),
            ``last_trouble`` (a sentence, or None), ``clock_behind`` (seconds by which the clock is
            behind the last `rank`: it went back, and nothing reaches its cutoff before that is made
            up) and ``guarantee``.
        """
        with self._lock:
            with self._store.transaction() as held:
                self._refresh(held)
                events, learned, troubles = held.last(), held.first_open() - 1, held.troubles()
                now, last = self._clock(), held.last_time()
                behind = 0.0 if last is None else max(0.0, last - now)
            return {
                "events": events,
                "learned": learned,
                "waiting": events - learned,
                "version": self._version,
                "rounds_until_update": self.policy.rounds_until_update_,
                "troubles": len(troubles),
                "last_trouble": troubles[-1][1] if troubles else None,
                "clock_behind": behind,
                "guarantee": str(self.guarantee),
            }

    def backup(self, path: Any) -> None:
        """Copy the file, as of one instant, while it is in use.

        Parameters
        ----------
        path : str or path-like
            What is there is replaced. The copy holds raw data, as the file does.
        """
        self._store.backup(path)
