"""A service with keys."""

from pagefile import Settings
from pagefile.settings import ServiceSettings

from .cli_calling import pagefile


def settings(**service):
    return Settings(service=ServiceSettings(**service))


def made(name, *options):
    """A key out of the command line, and how to show it."""
    said = pagefile("keys", "add", name, "--json", *options)
    assert 0 == said.code, said.err
    return said.json, {"Authorization": f"Bearer {said.json['key']}"}
