"""Notes who read and changed what, and answers who did."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile import records
from pagefile.engine.audit_log import AuditEntry, AuditLog, now_text
from pagefile.errors import SettingsError
from pagefile.service.auth import GuardedRouter, KeyedRoute, action_of, caller_of, is_public, subject_of
from pagefile.tiers.fair_pool import pool
from pagefile.wire import requests as ask
from pagefile.wire import responses as out

routes = GuardedRouter(route_class=KeyedRoute)


class AuditMiddleware:
    """Notes every request that a key could be needed for, once its status is known."""

    def __init__(self, app: ASGIApp, *, log: AuditLog) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_public(scope["path"]) or scope["path"] == "/metrics":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._log.note(_entry(scope, message["status"]))
            await send(message)

        await self._app(scope, receive, sent)


def _entry(scope: Scope, status: int) -> AuditEntry:
    principal, whom = caller_of(scope), subject_of(scope)
    route = getattr(scope.get("route"), "path", None) or "another path"
    named = whom or records.Scope(principal.tenant or records.DEFAULT_TENANT, principal.user)
    verb = f"{scope['method']} {route} {action_of(scope)}".rstrip()
    return AuditEntry(
        now_text(), principal.key_id, verb, named.tenant, named.user, named.conversation, status
    )


# Not in the reference of the API: it is for operators, and agents have no use for it.
@routes.get("/audit", response_model=out.AuditOut, include_in_schema=False)
async def audit(request: Request, asked: Annotated[ask.AuditParams, Query()]) -> out.AuditOut:
    """Who read and changed what of a tenant, newest first: the key, the verb, the user and the conversation, never what was said.

    Needs the setting `policy.audit`, and a key for the whole tenant where keys are required.
    """
    log: AuditLog | None = request.app.state.audit
    if log is None:
        raise SettingsError("There is no audit log: set policy.audit to a folder, and restart the service.")
    tenant = asked.tenant or records.DEFAULT_TENANT
    read = partial(log.entries, tenant, user=asked.of_user, key=asked.by_key, limit=asked.limit)
    return out.AuditOut.of(await pool().run(read))
