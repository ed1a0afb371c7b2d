"""The service's log as lines on stderr: text for a person, JSON for a machine.

Neither holds what people said: messages name routes, places and kinds of errors.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from pagefile.settings import ServiceSettings
from pagefile.text.visible import visible

#: What a request's line has beside its words.
FIELDS = ("method", "route", "status", "ms")

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record; a traceback stands in a field of its own."""
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
    """A line for a person. What a message quotes cannot begin another line; a traceback stands under its own, set in."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """The line, whatever stands in the message."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        """The traceback; no line of it begins as a record does."""
        return indent(visible(super().formatException(ei), lines=True), "  ")


def write_logs(service: ServiceSettings) -> None:
    """Write the log of this process as the settings say. For a process that is all the service's."""
    if service.logs == "none":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if service.logs == "json" else TextLines(_TEXT))
    logger = logging.getLogger("pagefile")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
