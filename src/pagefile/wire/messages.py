"""The messages of providers, as the API reference describes them.

They are for the reference and for the clients that are generated from it. What is sent is read by `pagefile.shapes`, which keeps fields
and kinds of content that these do not name.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType


class ShownAs:
    """Describes a field in the reference as another type than the one it is validated with."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _core(self) -> CoreSchema:
        return TypeAdapter(self._kind).core_schema

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: Callable[[CoreSchema], dict[str, Any]]
    ) -> dict[str, Any]:
        return handler(self._core)


class _Open(BaseModel):
    """Providers add fields: those are kept."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)


# -- OpenAI Chat -------------------------------------------------------------------------------------------------------


class OpenAITextPart(_Open):
    """Text."""

    type: Literal["text"]
    text: str


class OpenAIRefusalPart(_Open):
    """What the model says instead of an answer."""

    type: Literal["refusal"]
    refusal: str


class OpenAIImageUrl(_Open):
    """Where an image is, or the image itself as a data URL."""

    url: str
    detail: str | None = None


class OpenAIImagePart(_Open):
    """An image."""

    type: Literal["image_url"]
    image_url: OpenAIImageUrl


class OpenAIAudioPart(_Open):
    """A sound: its bytes in base64, and their format."""

    type: Literal["input_audio"]
    input_audio: dict[str, JsonValue]


class OpenAIFilePart(_Open):
    """A file: its id, or its name and bytes."""

    type: Literal["file"]
    file: dict[str, JsonValue]


OpenAIPart = TypeAliasType(
    "OpenAIPart",
    Annotated[
        OpenAITextPart | OpenAIRefusalPart | OpenAIImagePart | OpenAIAudioPart | OpenAIFilePart,
        Field(discriminator="type"),
    ],
)


class OpenAIFunction(_Open):
    """The function to call."""

    name: str
    arguments: str = Field(description="JSON, as the model wrote it.")


class OpenAIFunctionCall(_Open):
    """A call of a function."""

    id: str
    type: Literal["function"]
    function: OpenAIFunction


class OpenAICustomCall(_Open):
    """A call of a custom tool, whose input is free text."""

    id: str
    type: Literal["custom"]
    custom: dict[str, JsonValue]


OpenAIToolCall = TypeAliasType(
    "OpenAIToolCall", Annotated[OpenAIFunctionCall | OpenAICustomCall, Field(discriminator="type")]
)


class OpenAISystemMessage(_Open):
    """Instructions of the application."""

    role: Literal["system"]
    content: str | list[OpenAIPart]


class OpenAIDeveloperMessage(_Open):
    """Instructions of the application, for newer models."""

    role: Literal["developer"]
    content: str | list[OpenAIPart]


class OpenAIUserMessage(_Open):
    """What the user said."""

    role: Literal["user"]
    content: str | list[OpenAIPart]


class OpenAIAssistantMessage(_Open):
    """What the model said, and the tools it calls."""

    role: Literal["assistant"]
    content: str | list[OpenAIPart] | None = None
    tool_calls: list[OpenAIToolCall] | None = None


class OpenAIToolMessage(_Open):
    """The result of a call."""

    role: Literal["tool"]
    tool_call_id: str
    content: str | list[OpenAIPart]


OpenAIMessage = TypeAliasType(
    "OpenAIMessage",
    Annotated[
        OpenAISystemMessage
        | OpenAIDeveloperMessage
        | OpenAIUserMessage
        | OpenAIAssistantMessage
        | OpenAIToolMessage,
        Field(discriminator="role"),
    ],
)

# -- OpenAI Responses --------------------------------------------------------------------------------------------------


class ResponsesTextPart(_Open):
    """Text of the user, or of the model."""

    type: Literal["input_text", "output_text"]
    text: str


class ResponsesRefusalPart(_Open):
    """What the model says instead of an answer."""

    type: Literal["refusal"]
    refusal: str


class ResponsesFilePart(_Open):
    """An image, a file or a sound."""

    type: Literal["input_image", "input_file", "input_audio"]


ResponsesPart = TypeAliasType(
    "ResponsesPart",
    Annotated[ResponsesTextPart | ResponsesRefusalPart | ResponsesFilePart, Field(discriminator="type")],
)


class ResponsesMessage(_Open):
    """A message: the only kind of item whose `type` may be left out."""

    type: Literal["message"] | None = None
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ResponsesPart]


class ResponsesFunctionCall(_Open):
    """A call of a function."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str = Field(description="JSON, as the model wrote it.")


class ResponsesFunctionCallOutput(_Open):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | list[ResponsesPart]


class ResponsesReasoning(_Open):
    """What the model thought, in summary or encrypted."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: list[dict[str, JsonValue]]
    encrypted_content: str | None = None


class ResponsesHostedItem(_Open):
    """An item of a tool that the provider runs itself, or of one with its own format."""

    type: Literal[
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_trigger",
        "computer_call",
        "computer_call_output",
        "configuration_update",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    ]


ResponsesItem = TypeAliasType(
    "ResponsesItem",
    ResponsesMessage
    | ResponsesFunctionCall
    | ResponsesFunctionCallOutput
    | ResponsesReasoning
    | ResponsesHostedItem,
)

# -- Anthropic ---------------------------------------------------------------------------------------------------------


class AnthropicTextBlock(_Open):
    """Text."""

    type: Literal["text"]
    text: str


class AnthropicThinkingBlock(_Open):
    """What the model thought, with the signature that makes it valid."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class AnthropicRedactedThinkingBlock(_Open):
    """What the model thought, encrypted."""

    type: Literal["redacted_thinking"]
    data: str


class AnthropicToolUseBlock(_Open):
    """A call of a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, JsonValue]


class AnthropicSourceBlock(_Open):
    """An image or a document."""

    type: Literal["image", "document"]
    source: dict[str, JsonValue]


class AnthropicHostedBlock(_Open):
    """A block of a tool that the provider runs itself, or of the files it holds."""

    type: Literal[
        "advisor_tool_result",
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "compaction",
        "container_upload",
        "fallback",
        "mcp_tool_listing",
        "mcp_tool_result",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_addition",
        "tool_reference",
        "tool_removal",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    ]


class AnthropicToolResultBlock(_Open):
    """The result of a call."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[AnthropicTextBlock | AnthropicSourceBlock | AnthropicHostedBlock] | None = None
    is_error: bool | None = None


AnthropicBlock = TypeAliasType(
    "AnthropicBlock",
    Annotated[
        AnthropicTextBlock
        | AnthropicThinkingBlock
        | AnthropicRedactedThinkingBlock
        | AnthropicToolUseBlock
        | AnthropicToolResultBlock
        | AnthropicSourceBlock
        | AnthropicHostedBlock,
        Field(discriminator="type"),
    ],
)


class AnthropicMessage(_Open):
    """A message; what a tool returned is in one of the user."""

    role: Literal["user", "assistant"]
    content: str | list[AnthropicBlock]


#: Messages of one provider.
ProviderMessages = TypeAliasType(
    "ProviderMessages", list[OpenAIMessage] | list[ResponsesItem] | list[AnthropicMessage]
)
