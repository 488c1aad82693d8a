"""Where an audit listens: every answer and every draw of noise passes here on its way out.

Nothing is kept and nothing changes unless an audit runs; without one a call costs one look at a
context variable. A listener has five methods: ``draw(name, exact, law, make)`` for a draw of noise
around an exact value, ``choice(name, arguments, make)`` for a random choice, in which no secret has
part, ``order(rows, make)`` for a random order of rows, ``charged(cost, name)`` for what is charged,
and ``answer(door, owner, asked, arguments, pending, make)`` for what a session or a stream gives
out. All but ``charged`` return what is released: ``make()``, or what was released in another run.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
_LISTENER: ContextVar = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Any) -> Iterator[Any]:
    """Hand all draws and answers of this thread to a listener."""
    token = _LISTENER.set(listener)
    try:
        yield listener
    finally:
        _LISTENER.reset(token)


def tell_charge(cost, name):
    """Tell a charge, if somebody listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.charged(cost, name)


def _heard(tell: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator of methods of which a listener, if there is one, is told before they are run."""

    def decorate(method: F) -> F:
        @wraps(method)
        def heard(self, *arguments, **named):
            listener = _LISTENER.get()
            if listener is None:
                return method(self, *arguments, **named)
            make = partial(method, self, *arguments, **named)
            return tell(listener, make, self, arguments, named)

        return cast(F, heard)

    return decorate


@_heard
def draws(listener, make, owner, arguments, named):
    """Decorate a method ``(self, exact, *law)`` that draws noise around an exact value."""
    return listener.draw(make.func.__name__, arguments[0], arguments[1:], make)


@_heard
def chooses(listener, make, owner, arguments, named):
    """Decorate a method ``(self, *arguments)`` that makes a public random choice."""
    return listener.choice(make.func.__name__, arguments, make)


@_heard
def deals(listener, make, owner, arguments, named):
    """Decorate a method ``(self, rows)`` that draws a random order of the rows."""
    return listener.order(arguments[0], make)


@_heard
def door(listener, make, owner, arguments, named):
    """Decorate a method of a session or stream that gives out an answer."""
    asked, rest = (arguments[0], arguments[1:]) if arguments else (owner.query, ())
    # A stream has an exact sum of the records since its last read.
    pending = owner._increment.value if hasattr(owner, "_increment") else None
    return listener.answer(make.func.__name__, owner, asked, (*rest, named), pending, make)
