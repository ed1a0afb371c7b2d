"""What an answer that reports a failure says: the errors of HTTP APIs, of GraphQL, of tools."""

import json
import re
from collections.abc import Mapping

from pagefile.records import JsonValue
from pagefile.text.synopsis.wording import squeeze
from pagefile.text.tables import table

_FIELDS = table("pagefile.text.synopsis", "fields")["failures"]
#: Values that say that all is well.
WELL = frozenset[str](_FIELDS["well"])
_MESSAGES: list[str] = _FIELDS["messages"]
_CODES: list[str] = _FIELDS["codes"]


def failure_in(value: JsonValue) -> str | None:
    """What an answer that reports a failure says; None if it reports none."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or len(value) > 25:
        return None
    error = value.get("error") or value.get("Error") or value.get("errors") or value.get("fault")
    if not error and isinstance(told := value.get("detail"), list) and len(value) == 1:
        error = told
    if isinstance(error, list) and error and not (value.get("data") and len(error) == 0):
        error = error[0]
    if isinstance(error, dict):
        return _failure(error) or squeeze(json.dumps(error, ensure_ascii=False), 200)
    if isinstance(error, str) and error.strip() and len(value) <= 12:
        return squeeze(
            " ".join([error, _failure({key: item for key, item in value.items() if key != "error"})]), 240
        )
    return _failure(value) if _is_failure(value) else None


def _is_failure(value: Mapping[str, JsonValue]) -> bool:
    if value.get("success") is False or value.get("ok") is False or value.get("isError") is True:
        return True
    told = [value.get(key) for key in ("code", "errcode", "status", "statusCode", "errorCode", "ret")]
    bad = [
        code
        for code in told
        if (isinstance(code, int) and (code >= 400 or code < 0))
        or (isinstance(code, str) and re.search(r"(?i)error|fail|denied|invalid|exceed", code))
    ]
    return bool(bad) and any(isinstance(value.get(key), str) for key in _MESSAGES)


def _failure(error: Mapping[str, JsonValue]) -> str:
    codes = [
        str(code)
        for key in _CODES
        if isinstance(code := error.get(key), int | str)
        and not isinstance(code, bool)
        and len(str(code)) < 60
        and str(code).casefold() not in WELL
    ]
    said = [text for key in _MESSAGES if isinstance(text := error.get(key), str) and text.strip()]
    return squeeze(" ".join(dict.fromkeys([*codes, *said[:3]])), 300)
