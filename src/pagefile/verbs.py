"""The table of verbs: each with its method, its route, its request and its answer.

The service's routes, the client and its blocking version are generated from these rows. A verb added here and
to `Memory` or `Conversation` is available in all of them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from inspect import signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from pydantic import BaseModel

from pagefile.engine import Conversation, Memory
from pagefile.schema import Params
from pagefile.wire import requests as ask
from pagefile.wire import responses as out
from pagefile.wire import windows
from pagefile.wire.responses import Page

P = ParamSpec("P")
R = TypeVar("R")

#: Request fields whose name differs from the parameter's.
_FIELDS = {"turn": "turn_id", "older_than": "older_than_s", "source": "memory"}


class Verb(Generic[P, R]):
    def __init__(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[R]],
        route: str,
        request: type[BaseModel],
        answer: type[BaseModel],
        *,
        changes: bool = False,
        creates: bool = False,
        name: str | None = None,
        about: str | None = None,
        remark: str = "",
    ) -> None:
        self.method = method
        self.http_method, self.path = route.split()
        self.request = request
        #: Whether its arguments are sent as a query string.
        self.in_query = issubclass(request, Params)
        #: Built `of` what the method returns, and turned back by `record`.
        self.answer: Any = answer
        self.status = 201 if creates else 200
        #: Whether repeating it would have an effect: the client sends an Idempotency-Key with it.
        self.changes = changes or creates
        self.name = name or method.__name__
        lists = self.http_method == "GET" and issubclass(answer, Page)
        #: What generated clients call it, such as `listTurns`.
        self.operation_id = camel_case(f"list_{self.name}" if lists else self.name)
        summary = about or " ".join((method.__doc__ or "").split("\n\n")[0].split())
        #: What it does, for the HTTP reference: the method's first paragraph, unless `about` replaces it.
        self.description = f"{summary}\n\n{remark}" if remark else summary
        #: Whether a request for it names a conversation.
        self.of_conversation = getattr(Conversation, method.__name__, None) is method
        own = signature(method)
        this, *parameters = own.parameters.values()
        #: The request field for each parameter that has one.
        self.fields: Mapping[str, str] = {
            name: field
            for name in own.parameters
            if (field := name if name in request.model_fields else _FIELDS.get(name)) in request.model_fields
        }
        #: That of the method, except for what lives in the agent's own process, which no request has a field for.
        sent = [one for one in parameters if one.name in self.fields]
        self.signature = own.replace(parameters=[this, *sent])

    def arguments(self, asked: BaseModel) -> dict[str, Any]:
        return {name: _wire_value(field, getattr(asked, field)) for name, field in self.fields.items()}


def camel_case(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _wire_value(field: str, value: Any) -> Any:
    if field == "older_than_s":
        return None if value is None else timedelta(seconds=value)
    if field == "steps":
        return [step.model_dump() for step in cast("Sequence[ask.StepBody]", value)]
    return value


_NOT_THERE = "404 where the conversation was never used, or belongs to another user."

# -- a conversation ----------------------------------------------------------------------------------------------------

RECORD = Verb(
    Conversation.record,
    "POST /v1/turns",
    ask.RecordTurn,
    out.TurnOut,
    creates=True,
    remark="The same id with the same text returns the stored turn; with another text it is a conflict (409). So a request with an "
    "id can be repeated safely. Without an id, use an `Idempotency-Key`.",
)
BEGIN = Verb(
    Conversation.begin,
    "POST /v1/turns/begin",
    ask.BeginTurn,
    out.TurnOut,
    creates=True,
    remark="The same id with the same message returns the stored turn in its current state; with another message it is a conflict (409).",
)
EXTEND = Verb(Conversation.extend, "POST /v1/turns/extend", ask.ExtendTurn, out.TurnOut, changes=True)
STEP = Verb(Conversation.step, "POST /v1/turns/step", ask.AddStep, out.TurnOut, changes=True)
COMPLETE = Verb(Conversation.complete, "POST /v1/turns/complete", ask.CompleteTurn, out.TurnOut, changes=True)
ABORT = Verb(Conversation.abort, "POST /v1/turns/abort", ask.AbortTurn, out.TurnOut, changes=True)
MESSAGES = Verb(
    Conversation.messages, "GET /v1/turns/messages", ask.MessagesParams, out.MessagesOut, name="get_messages"
)
FORK = Verb(
    Conversation.fork, "POST /v1/memory/conversations/fork", ask.ForkConversation, out.ForkOut, creates=True
)
CONTEXT = Verb(Conversation.context, "POST /v1/context", ask.AskContext, windows.WindowOut)
CHAT_RECALL = Verb(Conversation.recall, "POST /v1/recall", ask.AskRecall, Page[out.HitOut])
LOAD = Verb(
    Conversation.load,
    "POST /v1/load",
    ask.AskLoad,
    out.LoadOut,
    remark="A part ends before an image, a table, a code block or a value that would be cut; `next` is where to read on. A text that "
    "was purged is gone (410), an unknown or foreign uuid was never there (404).",
)
CHAT_PAGE = Verb(Conversation.page, "GET /v1/pages/page", ask.PageParams, out.PageOut)
CHAT_PAGES = Verb(Conversation.pages, "GET /v1/pages", ask.PagesParams, Page[out.PageOut])
CHAT_SEARCH = Verb(
    Conversation.search_tool_history, "POST /v1/pages/search", ask.SearchPages, Page[out.PageHitOut]
)
FETCHED = Verb(Conversation.fetched, "POST /v1/pages/fetched", ask.FindFetched, out.FetchedOut)
PIN = Verb(Conversation.pin, "POST /v1/pages/pin", ask.PinPage, out.PageOut, changes=True)
CALL_TOOL = Verb(
    Conversation.call_tool,
    "POST /v1/tools/call",
    ask.CallTool,
    out.ToolAnswer,
    remark="A wrong uuid is explained in the text, not refused. Add the call and this text as a step to its turn, as with every "
    "other tool.",
)
CHECKPOINT = Verb(
    Conversation.checkpoint, "POST /v1/checkpoints", ask.MakeCheckpoint, out.CheckpointOut, creates=True
)
RESET = Verb(Conversation.reset, "POST /v1/reset", ask.ResetConversation, out.ResetOut, creates=True)
CHAT_TURNS = Verb(Conversation.turns, "GET /v1/turns", ask.TurnsParams, Page[out.TurnOut])
LOG = Verb(Conversation.log, "GET /v1/log", ask.LogParams, out.LogList, name="log_entries")
HEAD = Verb(
    Conversation.head,
    "GET /v1/memory/conversations/conversation",
    ask.ConversationParams,
    out.ConversationOut,
    name="get_conversation",
    about="One conversation: its owner, times and counts.",
    remark=_NOT_THERE,
)
SESSION = Verb(
    Conversation.session,
    "GET /v1/session",
    ask.ConversationParams,
    out.SessionOut,
    name="get_session",
    about="The session value of a conversation.",
    remark=_NOT_THERE,
)
PUT_SESSION = Verb(
    Conversation.put_session,
    "PUT /v1/session",
    ask.PutSession,
    out.SessionOut,
    remark="A name that is not known, and a value of another kind, are refused (422), and nothing is changed. It can be repeated.",
)
CHECKPOINTS = Verb(Conversation.checkpoints, "GET /v1/checkpoints", ask.MarksParams, Page[out.CheckpointOut])
CALLS = Verb(Conversation.calls, "GET /v1/calls", ask.CallsParams, Page[out.CallOut])
EXPLAIN = Verb(Conversation.explain, "GET /v1/explain", ask.ExplainParams, windows.ExplanationOut)
REPLAY = Verb(Conversation.replay, "POST /v1/replay", ask.AskReplay, windows.ReplayOut)
COSTS = Verb(Conversation.costs, "GET /v1/costs", ask.CostsParams, Page[windows.CostOut])

# -- a memory ----------------------------------------------------------------------------------------------------------

CONVERSATIONS = Verb(
    Memory.conversations, "GET /v1/memory/conversations", ask.ConversationsParams, Page[out.ConversationOut]
)
TURNS = Verb(Memory.turns, "GET /v1/turns/done", ask.DoneTurnsParams, Page[out.TurnOut], name="done_turns")
RECALL = Verb(
    Memory.recall,
    "POST /v1/recall",
    ask.AskRecall,
    Page[out.HitOut],
    about="Past turns of a conversation, or of all conversations of a user, that answer the query, best first, each with its "
    "neighbours.",
)
REMEMBER = Verb(Memory.remember, "POST /v1/facts", ask.RememberFact, out.FactOut, creates=True)
FACTS = Verb(Memory.facts, "GET /v1/facts", ask.FactsParams, Page[out.FactOut])
RETRACT = Verb(Memory.retract, "POST /v1/facts/retract", ask.RetractFact, out.FactOut, changes=True)
CORRECT = Verb(
    Memory.correct,
    "POST /v1/facts/correct",
    ask.CorrectFact,
    out.FactOut,
    changes=True,
    remark="409 if the fact is no longer current.",
)
FACT_REVISIONS = Verb(
    Memory.fact_revisions, "GET /v1/facts/revisions", ask.FactRevisionsParams, Page[out.RevisionOut]
)
UNDO = Verb(Memory.undo, "POST /v1/facts/undo", ask.UndoFacts, out.RevisionOut, changes=True)
IMPORT_FACTS = Verb(
    Memory.import_facts,
    "POST /v1/facts/import",
    ask.ImportFacts,
    out.ImportedFactsOut,
    changes=True,
    about="Remember the facts and the profile of a deer-flow memory.json; a second time changes nothing.",
)
CALL = Verb(
    Memory.call,
    "GET /v1/calls/call",
    ask.CallParams,
    out.CallOut,
    name="get_call",
    about="One recorded call by its id, with its conversation.",
    remark="404 if it is no longer kept, or belongs to another user.",
)
PAGE = Verb(
    Memory.page,
    "GET /v1/pages/page",
    ask.PageParams,
    out.PageOut,
    name="get_page",
    about="An archived tool result without its text: tool, size, synopsis, sources; also after the text was purged.",
)
PAGES = Verb(Memory.pages, "GET /v1/pages", ask.PagesParams, Page[out.PageOut])
PEEK = Verb(Memory.peek, "GET /v1/pages/text", ask.PeekParams, out.LoadOut)
SEARCH = Verb(
    Memory.search_tool_history,
    "POST /v1/pages/search",
    ask.SearchPages,
    Page[out.PageHitOut],
    about="Archived tool results that answer a query, best first, each with its best passage.",
)
PURGE = Verb(Memory.purge, "POST /v1/pages/purge", ask.PurgePages, out.PurgeOut, changes=True)
SETTLE = Verb(
    Memory.settle,
    "POST /v1/settle",
    ask.Settle,
    out.SettledOut,
    remark="Then what was written can be recalled by meaning. It waits no longer than `timeout_s`.",
)
FORGET = Verb(Memory.forget, "POST /v1/forget", ask.Forget, out.ErasureOut, changes=True)
DESCRIBE = Verb(Memory.describe, "GET /healthz", Params, out.HealthOut)

#: Every row.
TABLE = tuple(cast("Verb[..., Any]", row) for row in list(vars().values()) if isinstance(row, Verb))
