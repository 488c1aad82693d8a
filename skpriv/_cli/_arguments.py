"""Types of arguments, for argparse."""

import argparse
from math import isfinite


def positive(text):
    """Return a finite number above 0."""
    value = _number(text)
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} must be a finite number above 0")
    return value


def probability(text):
    """Return a number in (0, 1)."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0 and below 1")
    return value


class Joined(argparse.Action):
    """A list in one argument, separated by commas, or in several; each item once."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Join the lists of all arguments; numbers are put in increasing order."""
        items = list(dict.fromkeys(item for listed in values for item in listed))
        numbers = all(isinstance(item, float) for item in items)
        setattr(namespace, self.dest, sorted(items) if numbers else items)


def positives(text):
    """Return finite numbers above 0, separated by commas."""
    return [positive(part) for part in _parts(text)]


def at_least(smallest):
    """Type of the integers from `smallest`."""

    def integer(text):
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be an integer") from None
        if value < smallest:
            raise argparse.ArgumentTypeError(f"{text!r} must be at least {smallest}")
        return value

    return integer


def some_of(names):
    """Type of the lists of these names, separated by commas."""

    def listed(text):
        chosen = _parts(text)
        for name in chosen:
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} must be one of {', '.join(names)}")
        return chosen

    return listed


def _parts(text):
    # A comma at the end is that of a list which goes on in the next argument.
    return [part.strip() for part in text.strip().removesuffix(",").split(",")]


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number") from None
