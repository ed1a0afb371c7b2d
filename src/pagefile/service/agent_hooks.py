"""The hooks of coding agents: a thin script sends a hook's input here, and prints what it gets.

The state of a session (its open turn, what it was told) is in this process: agents need a service with one worker.
"""

from dataclasses import dataclass, field
from typing import cast

from fastapi import Request, Response
from pydantic_core import to_json

from pagefile.engine import Memory
from pagefile.integrations.claude_code.hooks import EXEMPT, ClaudeHooks
from pagefile.integrations.projects import project_user
from pagefile.lru import Lru
from pagefile.service.auth import open_memory
from pagefile.service.routes import router
from pagefile.wire.requests import AgentHook

#: Other agents write the names of the same tools in small letters.
_EXEMPT = EXEMPT | {name.lower() for name in EXEMPT}
#: How many users' sessions are kept, and how often a transcript is looked at: the agent waits meanwhile.
_USERS, _TRANSCRIPT_READS = 1_000, 2


@dataclass(slots=True)
class Agents:
    """The hooks of each user, who for a coding agent is a project."""

    memory: Memory
    _hooks: Lru[tuple[str | None, str, str], ClaudeHooks] = field(default_factory=lambda: Lru(_USERS))

    def hooks(self, tenant: str | None, user_id: str, agent: str) -> ClaudeHooks:
        key = tenant, user_id, agent
        if key not in self._hooks:
            self._hooks[key] = ClaudeHooks(
                self.memory,
                user_id=user_id,
                tenant=tenant,
                agent=agent,
                replaces=agent != "codex",
                exempt=_EXEMPT,
                transcript_reads=_TRANSCRIPT_READS,
                of_many=True,
            )
        return self._hooks[key]


routes = router("Coding agents")


def _agents(request: Request) -> Agents:
    """Those of the open memory; before it is open and after it is closed, the request is told so."""
    memory, known = open_memory(request.app), cast("Agents | None", request.app.state.agents)
    if known is None or known.memory is not memory:
        known = request.app.state.agents = Agents(memory)
    return known


# Not in the reference: what goes in and out is the agents' own format, and only our script sends it.
@routes.post("/agents/hook", include_in_schema=False, name="hook")
async def hook(request: Request, body: AgentHook) -> Response:
    agents = _agents(request)
    given = {**body.input, "session_id": body.conversation_id}
    answer = await agents.hooks(body.tenant, body.user_id or project_user(body.project), body.agent).answer(
        given
    )
    return Response(to_json(answer), media_type="application/json")
