"""The service's log on stderr: text for people, JSON for machines.

Neither contains user content: messages name routes, source locations and kinds of errors.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from pagefile.settings import ServiceSettings
from pagefile.text.visible import visible

#: The extra fields of an access log line.
FIELDS = ("method", "route", "status", "ms")

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


def write_logs(service: ServiceSettings) -> None:
    """Configure this process's logging from the settings. Only for a process that runs nothing but the service."""
    if service.logs == "none":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if service.logs == "json" else TextLines(_TEXT))
    logger = logging.getLogger("pagefile")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
