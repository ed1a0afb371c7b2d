"""The Model Context Protocol: a server of this memory's verbs, and a proxy that pages out the bulky results of any other server."""

from importlib.util import find_spec

from pagefile.errors import MissingExtraError

if find_spec("mcp") is None:
    raise MissingExtraError.of("mcp", "The Model Context Protocol")
