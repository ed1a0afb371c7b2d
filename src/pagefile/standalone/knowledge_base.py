"""Document 002's router and knowledge base, in whatever form a user has them, and what they found as a block of a prompt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pagefile.standalone.agent_memory import part_of, texts_in
from pagefile.standalone.user_code import called
from pagefile.text.sentences import cut
from pagefile.window.wording import Language

#: Knowledge-base prefixes that mean no retrieval.
NO_RETRIEVAL = ("", "general")
DEFAULT_AGENT = "default"
RETRIEVAL_HEADING = "【检索结果】"
RETRIEVAL_HEADINGS: Final[Mapping[Language, str]] = {"zh": RETRIEVAL_HEADING, "en": "[Retrieved]"}
#: The maximum length of each retrieval result in a prompt.
MAX_RESULT_CHARS = 2000
_CONTENT_KEYS = ("content", "text", "page_content", "snippet")
_SOURCE_KEYS = ("title", "source", "filename", "id")

#: An object with `route(message=…, session_id=…)`, or such a function; it returns `kb_prefix` and `agent_type`.
Router: TypeAlias = Any
#: An object with `retrieve(query=…, kb_prefix=…)`, such a function, or a LangChain retriever.
Retriever: TypeAlias = Any
#: What a knowledge base found, in any form.
Results: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """路由: which knowledge base and which agent answer."""

    kb_prefix: str = ""
    agent_type: str = DEFAULT_AGENT

    @property
    def use_retrieval(self) -> bool:
        return self.kb_prefix not in NO_RETRIEVAL


async def find_route(router: Router | None, message: str, session_id: str, agent_type: str | None) -> Route:
    """What the router decides; without one, no knowledge base and the requested agent."""
    decision: Any = {}
    if router is not None:
        decision = await called(getattr(router, "route", router), message=message, session_id=session_id)
    agent = part_of(decision, "agent_type") or agent_type
    return Route(part_of(decision, "kb_prefix") or "", agent or DEFAULT_AGENT)


async def retrieve(retriever: Retriever, query: str, kb_prefix: str | None) -> Results:
    """What the knowledge base has on a query, each as a mapping with its text."""
    # LangChain's retrievers know neither of the document's names.
    if hasattr(retriever, "ainvoke"):
        found = await retriever.ainvoke(query)
    else:
        found = await called(getattr(retriever, "retrieve", retriever), query=query, kb_prefix=kb_prefix)
    return [_result(one) for one in cast("Sequence[Any]", found or ())]


def results_block(results: Iterable[Mapping[str, Any]], language: Language = "zh") -> str:
    """The results as a block of a prompt, numbered, a line each; "" if there are none."""
    lines = [f"[{number}] {_line(result)}" for number, result in enumerate(results, 1)]
    return "\n".join([RETRIEVAL_HEADINGS[language], *lines]) if lines else ""


def _result(found: Any) -> dict[str, Any]:
    if isinstance(found, Mapping):
        return dict(cast("Mapping[str, Any]", found))
    # A document of LangChain.
    if isinstance(text := part_of(found, "page_content"), str):
        return {**(part_of(found, "metadata") or {}), "content": text}
    return {"content": str(found)}


def _line(result: Mapping[str, Any]) -> str:
    contents = (" ".join(texts_in(result.get(key))) for key in _CONTENT_KEYS)
    content = next((text for text in contents if text), None)
    source = next((str(result[key]) for key in _SOURCE_KEYS if result.get(key)), None)
    said = cut(" ".join((content or str(dict(result))).split()), MAX_RESULT_CHARS)
    return f"{source}: {said}" if source and content else said
