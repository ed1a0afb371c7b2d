"""Messages made from the vendors' own types: whatever their packages allow, and what their services add to it."""

import base64
import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, ForwardRef, Literal, NotRequired, Required, Union, get_args, get_origin

import anthropic.types
import openai.types.chat
import openai.types.responses
import typing_extensions
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

#: What a message may be, by shape.
TYPES = {
    "openai": openai.types.chat.ChatCompletionMessageParam,
    "responses": openai.types.responses.ResponseInputItemParam,
    "anthropic": anthropic.types.MessageParam,
}

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WORDS = st.sampled_from(
    ["", " ", "Where is it?", "血压 140/90 🙂", "</tool>", "a\nb", "null", "$part", '{"$part": [0]}']
)
IDS = st.sampled_from(["call_a", "call_b", "call_c"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from([1.0, 0.5, 1e20]), WORDS)
KEYS = st.sampled_from(["x", "$part", "$$result", "type", "$", "cache_control", "名"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=2)),
    max_leaves=4,
)
ARGUMENTS = st.one_of(
    st.builds(
        json.dumps,
        st.dictionaries(KEYS, JSON, max_size=2),
        ensure_ascii=st.booleans(),
        separators=st.sampled_from([None, (",", ":")]),
        indent=st.sampled_from([None, 1]),
    ),
    st.sampled_from(
        ["", "{", "NaN", "1e999", '{"a":1,"a":2}', '"\\ud800"', '"\\u0000"', "7", '"text"', "{ }"]
    ),
)
DATA = st.one_of(
    st.sampled_from([PNG, b"%PDF-1.7 ...", b"plain"]).map(lambda data: base64.b64encode(data).decode()),
    st.sampled_from(["", "not base64!", "YQ", "YR=="]),
)
URLS = st.one_of(
    DATA.map(lambda data: f"data:image/png;base64,{data}"),
    st.sampled_from(["https://example.org/a.png", "", "data:text/plain,hello"]),
)
#: Texts that mean something, by the name of their field.
BY_NAME: Mapping[str, st.SearchStrategy] = {
    "arguments": ARGUMENTS,
    "id": IDS,
    "call_id": IDS,
    "tool_call_id": IDS,
    "tool_use_id": IDS,
    "data": DATA,
    "file_data": st.one_of(URLS, DATA),
    "url": URLS,
    "image_url": URLS,
    "name": st.sampled_from(["search", "read_file", "x" * 120, " "]),
}


@functools.cache
def made(hint: Any, name: str = "") -> st.SearchStrategy:
    """Anything of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is str:
        return BY_NAME.get(name, WORDS)
    if origin in {
        Required,
        NotRequired,
        typing.Annotated,
        typing_extensions.Required,
        typing_extensions.NotRequired,
    }:
        return made(arguments[0], name)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {Union, types.UnionType}:
        return st.one_of([st.none() if one is type(None) else made(one, name) for one in arguments])
    if origin in {list, Iterable} or (
        isinstance(origin, type) and issubclass(origin, Iterable) and len(arguments) == 1
    ):
        return st.lists(st.deferred(lambda: made(arguments[0])), max_size=2)
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return st.dictionaries(KEYS, made(arguments[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return _model(hint)
    if typing_extensions.is_typeddict(hint):
        return st.deferred(lambda: _typed_dict(hint))
    return _LEAF.get(hint, JSON)


_LEAF = {
    int: st.integers(0, 99),
    float: st.sampled_from([0.5, 2.0]),
    bool: st.booleans(),
    type(None): st.none(),
}


def _typed_dict(hint: Any) -> st.SearchStrategy:
    fields = typing_extensions.get_type_hints(hint, include_extras=True)
    needed = {name: made(kind, name) for name, kind in fields.items() if _is_required(kind)}
    others = {name: made(kind, name) for name, kind in fields.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=others)


def _is_required(kind: Any) -> bool:
    return not isinstance(kind, ForwardRef) and get_origin(kind) in {Required, typing_extensions.Required}


def _model(model: type[BaseModel]) -> st.SearchStrategy:
    fields = {name: made(field.annotation, name) for name, field in model.model_fields.items()}
    return st.fixed_dictionaries(fields).map(lambda values: model.model_construct(**values))


@st.composite
def with_unknown_fields(draw: st.DrawFn, message: st.SearchStrategy) -> Any:
    """A message to which a service added what its types do not have."""
    value = draw(message)
    if draw(st.integers(0, 3)) == 0:
        value = {
            **value,
            **draw(st.dictionaries(st.sampled_from(["usage", "$result", "x_provider"]), JSON, max_size=2)),
        }
    content = value.get("content")
    if isinstance(content, list) and draw(st.integers(0, 3)) == 0:
        value = {**value, "content": [*content, {"type": "hologram", "$blob": draw(JSON)}]}
    return value


def conversations(shape: str) -> st.SearchStrategy:
    """Messages of one vendor, in any order."""
    return st.lists(with_unknown_fields(made(TYPES[shape])), min_size=1, max_size=5)


def is_valid(shape: str, message: Any) -> bool:
    """Whether a vendor's own type takes a message; raises what it says if not."""
    VALIDATORS[shape].validate_python(message)
    return True


@functools.cache
def eager(hint: Any) -> Any:
    """The same type with lists for iterables, into which pydantic looks only when somebody goes through them."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return Union[tuple(eager(one) for one in arguments)]  # noqa: UP007 - made of a tuple
    if origin in {Required, typing_extensions.Required}:
        return Required[eager(arguments[0])]
    if origin not in {None, Literal, typing.IO} and len(arguments) == 1 and issubclass(origin, Iterable):
        return list[eager(arguments[0])]
    if typing_extensions.is_typeddict(hint):
        fields = typing_extensions.get_type_hints(hint, include_extras=True)
        made_of = {name: eager(kind) for name, kind in fields.items()}
        return typing_extensions.TypedDict(hint.__name__, made_of, total=False)
    return str if origin is typing.IO else hint


VALIDATORS = {shape: TypeAdapter(eager(kind)) for shape, kind in TYPES.items()}


def json_of(value: Any) -> str:
    """The JSON of something, in which 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_dumped)


def _dumped(model: BaseModel) -> Any:
    return model.model_dump(mode="json", exclude_unset=True, by_alias=True)
