"""What a user of the command line did wrong."""

from ..exceptions import SkprivError


class CommandError(SkprivError):
    """One sentence for stderr; the exit code is 2."""
