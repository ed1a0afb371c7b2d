"""What a client can read and attach by itself: the facts, conversations and archived pages of its user, each with a URI."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate

from pagefile import verbs
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.mcp.calling import Caller
from pagefile.mcp.tools import FACTS_TOOL
from pagefile.records import ConversationInfo, Page, Turn
from pagefile.text.sentences import clip

SCHEME = "pagefile://"
FACTS = f"{SCHEME}facts"
_CONVERSATIONS, _PAGES = f"{SCHEME}conversations/", f"{SCHEME}pages/"
TEXT, MARKDOWN = "text/plain", "text/markdown"

#: How many resources a page of the list has, and how many turns of a conversation are read.
_LISTED, _TURNS = 50, 50
_TITLE_CHARS = 80

TEMPLATES = (
    ResourceTemplate(
        uri_template=f"{_CONVERSATIONS}{{conversation_id}}",
        name="conversation",
        title="A conversation",
        description="The newest turns of a conversation.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template=f"{_PAGES}{{uuid}}",
        name="page",
        title="An archived tool result",
        description="The whole text of an archived tool result.",
        mime_type=TEXT,
    ),
)


@dataclass(frozen=True, slots=True)
class Listed:
    resources: list[Resource]
    following: str | None = None


def conversation_uri(conversation_id: str) -> str:
    return _CONVERSATIONS + quote(conversation_id, safe="")


async def listed(caller: Caller, cursor: str | None) -> Listed:
    """The facts, then conversations, most recently used first, then archived pages."""
    kind, _, after = (cursor or "conversations:").partition(":")
    if kind not in {"conversations", "pages"}:
        raise InvalidArgumentError(f"There is no page {cursor!r} of this list: begin without a cursor.")
    verb = verbs.CONVERSATIONS if kind == "conversations" else verbs.PAGES
    found = await caller.ask(verb, limit=_LISTED, **({"after": after} if after else {}))
    following = f"{kind}:{found.next}" if found.next else None
    if kind == "pages":
        return Listed([_page(page) for page in found], following)
    first = [] if cursor else [_facts()]
    return Listed([*first, *map(_conversation, found)], following or "pages:")


def _facts() -> Resource:
    return Resource(
        uri=FACTS,
        name=FACTS_TOOL,
        title="Facts",
        description="What is remembered about the user.",
        mime_type=MARKDOWN,
    )


def _conversation(head: ConversationInfo) -> Resource:
    name = str(head.scope.conversation)
    return Resource(
        uri=conversation_uri(name),
        name=name,
        title=f"Conversation {clip(name, _TITLE_CHARS)}",
        description=f"{head.turns} turns",
        mime_type=MARKDOWN,
    )


def _page(page: Page) -> Resource:
    return Resource(
        uri=_PAGES + page.uuid,
        name=page.uuid,
        title=f"{page.tool}: {clip(page.query_summary, _TITLE_CHARS)}",
        description=page.result_summary,
        mime_type=TEXT,
    )


async def text_of(caller: Caller, uri: str) -> tuple[str, str]:
    """The media type and the text of a resource."""
    if uri == FACTS:
        return MARKDOWN, await caller.told(FACTS_TOOL, {})
    if uri.startswith(_CONVERSATIONS):
        name = unquote(uri.removeprefix(_CONVERSATIONS))
        turns = await caller.ask(verbs.CHAT_TURNS, conversation_id=name, limit=_TURNS, newest=True)
        if turns:
            return MARKDOWN, "\n\n".join(line for turn in turns for line in _said(turn))
    elif uri.startswith(_PAGES):
        return TEXT, await caller.ask(verbs.PEEK, uuid=uri.removeprefix(_PAGES))
    raise NotFoundError(f"There is no resource {clip(uri, 200)!r}.")


def _said(turn: Turn) -> Iterator[str]:
    if turn.user:
        yield f"**User** ({turn.at:%Y-%m-%d %H:%M}): {turn.user}"
    for step in turn.steps:
        yield f"**{step.tool}**: {clip(step.result, _TITLE_CHARS * 4)}"
    if turn.assistant:
        yield f"**Assistant**: {turn.assistant}"


async def conversations_like(caller: Caller, beginning: str) -> list[str]:
    """The ids of conversations that begin with a text, for completion."""
    found = await caller.ask(verbs.CONVERSATIONS, limit=1000)
    names = [str(head.scope.conversation) for head in found]
    return [name for name in names if name.startswith(beginning)]
