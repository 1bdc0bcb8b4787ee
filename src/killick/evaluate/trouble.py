"""What a failing judge says, kept short: the first lines are logged, the others counted."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

_JUDGES = ("killick.verifiers.judge", "killick.verifiers.python_function")  # who logs a line for every crash
_SHOWN = 3


class Trouble(logging.Filter):
    """Lets the first lines of the judges pass.

    Attributes:
        first: what the first one was about: the exception, else the line itself; None without trouble.
        num: lines so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first: str | None = None
        self.num = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is shown."""
        if record.levelno < logging.WARNING:
            return True
        self.num += 1
        if self.first is None:
            error = record.exc_info[1] if record.exc_info else None
            self.first = f"{type(error).__name__}: {error}" if error else record.getMessage()
        return self.num <= _SHOWN


@contextmanager
def few_lines() -> Iterator[Trouble]:
    """Within the block, a judge that fails again and again fills no screen; at its end the rest is counted."""
    trouble = Trouble()
    for name in _JUDGES:
        logging.getLogger(name).addFilter(trouble)
    try:
        yield trouble
    finally:
        for name in _JUDGES:
            logging.getLogger(name).removeFilter(trouble)
        if trouble.num > _SHOWN:
            logger.warning("%d more lines like these from the judge were left out.", trouble.num - _SHOWN)
