"""What is logged while something runs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector(logging.Handler):
    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def warnings_of(*names: str) -> Iterator[list[str]]:
    """The warnings that loggers get meanwhile."""
    messages: list[str] = []
    collector = _Collector(messages)
    for name in names:
        logging.getLogger(name).addHandler(collector)
    try:
        yield messages
    finally:
        for name in names:
            logging.getLogger(name).removeHandler(collector)
