"""The HTTP service: Memory's verbs as JSON over HTTP, for agents that are not written in Python."""

from importlib.util import find_spec

from pagefile.errors import MissingExtraError

if find_spec("fastapi") is None:
    raise MissingExtraError.of("service", "The HTTP service")
