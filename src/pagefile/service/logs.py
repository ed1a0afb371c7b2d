"""The service's log on stderr: text for people, JSON for machines.

Neither contains user content: messages name routes, source locations and kinds of errors.
"""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from textwrap import indent
from time import monotonic
from typing import Any

from pagefile.settings import ServiceSettings
from pagefile.text.visible import visible

#: The extra fields of an access log line.
FIELDS = ("method", "route", "status", "ms", "request", "key", "client")

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Lines for people. A quoted line break cannot start a new record, and tracebacks are indented below theirs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        return indent(visible(super().formatException(ei), lines=True), "  ")


class Seldom(logging.Filter):
    """Lets a message pass so many times a minute: whoever causes it must not fill the disk with it."""

    def __init__(self, most: int = 10, *, now: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._most, self._now = most, now
        self._minute, self._seen = 0, Counter[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(self._now() / 60)
        if minute != self._minute:
            self._minute = minute
            self._seen.clear()
        message = str(record.msg)
        self._seen[message] += 1
        if self._seen[message] == self._most:
            record.msg = f"{message} (more of these are left out for the rest of the minute)"
        return self._seen[message] <= self._most


def write_logs(service: ServiceSettings) -> None:
    """Configure this process's logging from the settings. Only for a process that runs nothing but the service."""
    if service.logs == "none":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if service.logs == "json" else TextLines(_TEXT))
    # What libraries warn of, such as the pool of PostgreSQL in an outage, is written in the same form.
    others = logging.StreamHandler(sys.stderr)
    others.setFormatter(handler.formatter)
    others.setLevel(logging.WARNING)
    logging.getLogger().handlers = [others]
    # The server writes in a form of its own otherwise.
    server = logging.getLogger("uvicorn")
    server.handlers, server.propagate = [], True
    logger = logging.getLogger("pagefile")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    # What the server says of a broken request, or of a connection that it cannot accept, is said as often as clients like.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(Seldom())
