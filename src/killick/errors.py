"""Every error killick raises on purpose.

A message says what was asked, what was found, what is allowed and what to do. Each class also inherits the
built-in it specialises, so `except ValueError` in a caller's script keeps working.
"""


class KillickError(Exception):
    """Root of all errors raised on purpose; the command line prints these without a traceback."""

    exit_code = 2


class ConfigError(KillickError, ValueError):
    """A recipe, setting or combination of settings cannot work."""


class DataError(KillickError, ValueError):
    """A data set or model folder lacks what was asked of it, or holds something unusable."""


class VerifierError(KillickError, RuntimeError):
    """A verifier cannot be used at all (missing package, broken set-up). A bad completion is a verdict, not this."""


class ContractError(KillickError, RuntimeError):
    """The host library no longer offers what killick relies on."""


class RecordError(KillickError, ValueError):
    """Stored records or checkpoints are unreadable, or belong to another run."""
