"""A route that logs, spans and the audit log can name."""

from typing import Any

from starlette.routing import Route
from starlette.types import Scope


class NamedRoute(Route):
    """FastAPI says in the request which of its routes matched; Starlette's own do not."""

    def matches(self, scope: Scope) -> Any:
        match, child = super().matches(scope)
        return match, {**child, "route": self}
