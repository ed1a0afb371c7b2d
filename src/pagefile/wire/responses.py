"""Response bodies: the records as `pagefile.record_json` prints them, lists of them, and what else is answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar, cast, get_args

from pydantic import ConfigDict, Field

from pagefile import records
from pagefile.engine import Conversation
from pagefile.errors import PagefileError
from pagefile.record_json import CallOut as CallOut
from pagefile.record_json import CheckpointOut, Json, PageOut, ResetOut, TurnOut
from pagefile.record_json import ConversationOut as ConversationOut
from pagefile.record_json import ErasureOut as ErasureOut
from pagefile.record_json import FactOut as FactOut
from pagefile.record_json import HitOut as HitOut
from pagefile.record_json import PageHitOut as PageHitOut
from pagefile.record_json import RevisionOut as RevisionOut
from pagefile.schema import Answer, Mirror
from pagefile.wire.messages import ProviderMessages, ShownAs
from pagefile.wire.requests import FactsParams, behind, cursor_of, with_example

T = TypeVar("T")
#: The media type of an export.
LINES = "application/x-ndjson"


# Pydantic looks for docstrings where the class is given its items, and stumbles over what is there.
class Page(Answer, Generic[T], use_attribute_docstrings=False):
    """A slice of a list."""

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """`TurnList` for a slice of `TurnOut`s, in the reference and in clients generated from it."""
        return "".join(getattr(one, "__name__", "").removesuffix("Out") for one in params) + "List"

    items: tuple[T, ...]
    next: str | None = Field(default=None, description="Pass it as `after` to continue; null at the end.")

    @classmethod
    def of(cls, found: Sequence[Any], following: str | None = None) -> Self:
        """The slice for a listing; for a plain list, `following` must be given."""
        more = found.next if isinstance(found, records.Listing) else following
        return cls(items=tuple(cls._item(one) for one in found), next=more)

    @classmethod
    def first(cls, found: Sequence[Any], limit: int, place: Callable[[Any], object]) -> Self:
        """The first items of a list; `place` says where to continue after an item."""
        shown = found[:limit]
        return cls.of(shown, str(place(shown[-1])) if len(found) > limit else None)

    @classmethod
    def _item(cls, record: Any) -> Any:
        out: Any = get_args(cls.model_fields["items"].annotation)[0]
        return out.of(record)

    def record(self) -> records.Listing[Any]:
        return records.Listing([cast("Mirror[Any]", item).record() for item in self.items], self.next)


class Alone(Answer):
    """A value in a field of its own."""

    @classmethod
    def of(cls, value: Any) -> Self:
        [name] = cls.model_fields
        return cls.model_validate({name: value}, from_attributes=True)

    def record(self) -> Any:
        [value] = vars(self).values()
        return cast("Mirror[Any]", value).record() if isinstance(value, Mirror) else value


# -- turns -------------------------------------------------------------------------------------------------------------


class MessagesOut(Alone):
    """The messages of a turn."""

    messages: Annotated[list[Json], ShownAs(ProviderMessages)]


# -- conversations -----------------------------------------------------------------------------------------------------


class LoggedTurn(TurnOut):
    """A turn in the log."""

    kind: Literal["turn"] = "turn"


class LoggedCheckpoint(CheckpointOut):
    """A checkpoint in the log."""

    kind: Literal["checkpoint"] = "checkpoint"


class LoggedReset(ResetOut):
    """A reset in the log."""

    kind: Literal["reset"] = "reset"


#: An entry in a conversation's log; `kind` says which.
EntryOut: TypeAlias = Annotated[LoggedTurn | LoggedCheckpoint | LoggedReset, Field(discriminator="kind")]


class LogList(Page[EntryOut]):
    """A slice of a log."""

    @classmethod
    def _item(cls, record: Any) -> Any:
        kinds = {records.Turn: LoggedTurn, records.Checkpoint: LoggedCheckpoint, records.Reset: LoggedReset}
        return kinds[type(record)].of(record)


class _Conversation(Answer):
    conversation_id: str
    user_id: str | None
    tenant: str


class ForkOut(_Conversation):
    """A new conversation."""

    @classmethod
    def of(cls, made: Conversation) -> Self:
        return cls(conversation_id=made.id, user_id=made.scope.user, tenant=made.scope.tenant)

    def record(self) -> Self:
        """It names the conversation; whoever asked makes the handle."""
        return self


class SessionOut(_Conversation):
    """The session value an agent keeps for a conversation."""

    value: Json | None = Field(description="The session value; null when there is none.")

    @classmethod
    def of(cls, scope: records.Scope, value: records.JsonObject | None) -> Self:
        own = None if value is None else cast("Json", dict(value))
        return cls(
            conversation_id=scope.conversation or "", user_id=scope.user, tenant=scope.tenant, value=own
        )

    def record(self) -> records.JsonObject | None:
        return self.value


class HistoryOut(Answer):
    """The history of a conversation as text."""

    model_config = ConfigDict(from_attributes=True)

    conversation_id: str
    mode: str = Field(description="`SUMMARY_N` where a summary replaces older turns, else `FULL_HISTORY`.")
    history: str = Field(description="For the prompt.")
    full_history: str = Field(
        description="For the next summary: the same with every turn that is not summarized."
    )
    estimated_tokens: int = Field(description="Tokens of the history and the query together.")
    token_ratio: float = Field(description="Their share of the window.")
    should_checkpoint_summary: bool = Field(description="Whether a summary is due.")
    read_token: str = Field(description="Goes with the summary to `POST /v1/checkpoints`.")


# -- the archive -------------------------------------------------------------------------------------------------------


class FetchedOut(Alone):
    """The page of an equal call, if one is fresh enough."""

    page: PageOut | None


class PurgeOut(Answer):
    """The pages that became tombstones."""

    items: tuple[PageOut, ...]
    stored_bytes: int
    """What the texts took on disk, equal ones once; a text that others hold stays there."""

    @classmethod
    def of(cls, pages: Sequence[records.Page]) -> Self:
        texts = {page.content_hash: page.stored_bytes for page in pages}
        return cls(items=tuple(PageOut.of(page) for page in pages), stored_bytes=sum(texts.values()))

    def record(self) -> list[records.Page]:
        return [page.record() for page in self.items]


class LoadOut(Answer):
    """An archived tool result, a part of it, or passages from it."""

    uuid: str
    text: str
    query: str | None = Field(description="What the passages answer; null for a part.")
    offset: int
    length: int = Field(description="Characters of the whole result.")
    next: int | None = Field(description="The offset to continue from; null at the end and for passages.")

    @classmethod
    def of(cls, page: records.Page, text: str, offset: int, query: str | None) -> Self:
        end = offset + len(text)
        more = end if query is None and end < page.length else None
        return cls(uuid=page.uuid, text=text, query=query, offset=offset, length=page.length, next=more)

    def record(self) -> str:
        return self.text


class ToolOut(Answer):
    """A tool to offer to the model."""

    name: str
    description: str
    parameters: Json = Field(description="JSON schema of the arguments.")


class OpenAITool(Answer):
    """A tool as OpenAI's chat API takes it."""

    type: Literal["function"]
    function: ToolOut


class ResponsesTool(ToolOut):
    """A tool as OpenAI's Responses API takes it."""

    type: Literal["function"]


class AnthropicTool(Answer):
    """A tool as Anthropic's API takes it."""

    name: str
    description: str
    input_schema: Json


class McpTool(Answer):
    """A tool as an MCP server lists it."""

    name: str
    description: str
    inputSchema: Json  # noqa: N815 - MCP's word


AnyTool: TypeAlias = ResponsesTool | ToolOut | OpenAITool | AnthropicTool | McpTool


class ToolList(Page[AnyTool]):
    """The tools to offer to the model."""


TOOL_SHAPES: Mapping[str, type[AnyTool]] = {
    "plain": ToolOut,
    "openai": OpenAITool,
    "responses": ResponsesTool,
    "anthropic": AnthropicTool,
    "mcp": McpTool,
}


class ToolAnswer(Alone):
    """The result of a tool call, for the model."""

    text: str
    """Always text that a model can read: what cannot be loaded is explained in it."""

    @classmethod
    def of(cls, value: str) -> Self:
        # It may quote the model's output, and a lone surrogate cannot be encoded.
        return super().of(value.encode("utf-8", "replace").decode())


# -- facts -------------------------------------------------------------------------------------------------------------


def facts_page(found: Sequence[records.Fact], asked: FactsParams) -> Page[FactOut]:
    """The facts of a page."""
    if asked.after is not None:
        # The fact may have left the list since, so paging continues after a point in time, not after a fact.
        start = behind(asked.after)
        found = [fact for fact in found if (fact.recorded, fact.id) > start]
    return Page[FactOut].first(found, asked.limit, lambda fact: cursor_of(fact.recorded, fact.id))


class ImportedFactsOut(Answer):
    """The outcome of importing a memory file's facts."""

    stored: int
    duplicate: int
    superseded: int
    rejected: int = Field(description="Blank, no text, or a secret.")

    @classmethod
    def of(cls, counts: dict[str, int]) -> Self:
        return cls(**counts)

    def record(self) -> dict[str, int]:
        return self.model_dump()


# -- the whole memory --------------------------------------------------------------------------------------------------


class SettledOut(Answer):
    """Whether background work has caught up."""

    settled: bool = Field(description="False when the time was over first.")


class ImportOut(Answer):
    """What was new."""

    counts: dict[str, int] = Field(description="How many of each kind were not there before.")


class TokenizerOut(Answer):
    """What counts the tokens."""

    name: str
    exact: bool = Field(description="False when the counts are estimates.")


class HealthOut(Answer):
    """The service is running, and what it runs on: null if the store does not answer, or if a key is needed to see it."""

    status: Literal["ok"] = "ok"
    version: str
    store: Json | None = None
    tokenizer: TokenizerOut | None = None
    window_tokens: int | None = None
    """Tokens of a window, unless a request says otherwise."""
    model: str | None = Field(default=None, description="The chat model of the settings.")
    tier_failures: dict[str, int] | None = None
    """How often each tier failed since the start."""
    calls_dropped: int | None = None
    erasures_owed: dict[str, int] | None = None
    """Places outside the database that could not be reached when something was erased, and how many scopes they have still to erase."""


class AuditEntryOut(Answer):
    """A request, or something the service did by itself."""

    at: str
    key: str | None = Field(
        description="The id of the key; null for a caller without one, and for the service itself."
    )
    verb: str
    tenant: str | None
    user: str | None
    conversation: str | None
    status: int = Field(description="The HTTP status; 0 where there is none.")
    count: int | None = Field(description="How many things it concerned, where that is known.")


class AuditOut(Answer):
    """Entries of the audit log, newest first."""

    items: tuple[AuditEntryOut, ...]

    @classmethod
    def of(cls, entries: Sequence[Any]) -> Self:
        return cls(items=tuple(AuditEntryOut(**asdict(entry)) for entry in entries))


class ReadyOut(Answer):
    """The service accepts requests."""

    status: Literal["ready"] = "ready"


MEDIA_TYPE = "application/problem+json"


class FieldError(Answer):
    """One invalid field."""

    where: Literal["body", "query", "header", "path"] = Field(description="Which part of the request.")
    pointer: str = Field(description="Which field, as a JSON pointer; empty for the whole.")
    code: str
    detail: str


class Problem(Answer):
    """An error of any kind."""

    type: str = Field(description="Where this kind of problem is explained, relative to the service.")
    title: str
    status: int
    detail: str = Field(description="What happened this time, and what to do.")
    instance: str = Field(description="This occurrence; the service's log names it too.")
    code: str = Field(description="The stable name to program against.")
    errors: tuple[FieldError, ...] = Field(default=(), description="Which fields, for validation errors.")
    retry_after_s: int | None = Field(
        default=None, description="When to ask again, in seconds, where it is known."
    )

    model_config = ConfigDict(json_schema_extra=with_example)


def kinds_of_error(known: type[PagefileError] = PagefileError) -> list[type[PagefileError]]:
    """The class of an error and all its subclasses."""
    below = (member for child in known.__subclasses__() for member in kinds_of_error(child))
    # One with two parents is found twice.
    return list(dict.fromkeys((known, *below)))
