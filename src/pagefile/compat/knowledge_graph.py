"""The tools of the MCP reference memory server (`@modelcontextprotocol/server-memory`) over facts.

An observation is a fact about its entity, a relation a fact about the entity it starts from, so both reach windows, can be
undone and are erased with the user. What is known about the user is the entity that has the user's own id as its name.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from pagefile.compat.memories import Entry, Memories
from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemWrite, Namespace
from pagefile.records import DEFAULT_TENANT, JsonValue, checked_id
from pagefile.text.fact_ranking import statement_key
from pagefile.tiers.fact_book import USER, Draft

_ENTITIES: Namespace = (OWN_NAMESPACE, "knowledge graph")
_RELATION = "relation"
#: The type of an entity that was never created by name: somebody stated a fact about it.
_UNNAMED_TYPE, _USER_TYPE = "entity", "person"


class Entity(TypedDict):
    name: str
    entityType: str
    observations: list[str]


#: `from` is no name for a field of a class.
Relation = TypedDict("Relation", {"from": str, "to": str, "relationType": str})


class Graph(TypedDict):
    entities: list[Entity]
    relations: list[Relation]


class ObservationsOf(TypedDict):
    entityName: str
    contents: list[str]


class Deletion(TypedDict):
    entityName: str
    observations: list[str]


class ToolAnswer(NamedTuple):
    """The text and the structured content of a tool's answer."""

    text: str
    structured: dict[str, Any]


@dataclass(frozen=True, slots=True)
class KnowledgeGraph:
    """A user's graph: `await graph.call("create_entities", {"entities": […]})`."""

    memories: Memories
    user: str

    @classmethod
    def of(cls, memory: Memory, user_id: str, tenant: str | None = None) -> "KnowledgeGraph":
        named = DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant")
        return cls(Memories(memory, named, user_id), checked_id(user_id, "user_id"))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """One of the nine tools, with the answer of the reference server."""
        if tool not in TOOLS:
            raise NotFoundError(f"There is no tool {tool!r}: use one of {', '.join(TOOLS)}.")
        method, takes = TOOLS[tool]
        try:
            given = [kind.validate_python(arguments[name]) for name, kind in takes.items()]
        except KeyError as error:
            raise InvalidArgumentError(f"{tool} needs {error.args[0]!r}.") from error
        except ValidationError as error:
            places = "; ".join(f"{one['loc']}: {one['msg']}" for one in error.errors()[:3])
            raise InvalidArgumentError(f"The arguments of {tool} do not fit: {places}") from error
        return await method(self, *given)

    # -- changing ------------------------------------------------------------------------------------------------------

    async def create_entities(self, entities: Sequence[Entity]) -> ToolAnswer:
        known = {one["name"] for one in (await self.graph())["entities"]}
        new: list[Entity] = []
        for one in entities:
            if one["name"] not in known:
                known.add(one["name"])
                new.append(one)
        marks = [ItemWrite(_ENTITIES, one["name"], {"entityType": one["entityType"]}) for one in new]
        await self._write(marks)
        for one in new:
            await self._observe(one["name"], one["observations"])
        return _json_answer("entities", new)

    async def create_relations(self, relations: Sequence[Relation]) -> ToolAnswer:
        known = (await self.graph())["relations"]
        new: list[Relation] = []
        for one in relations:
            if one not in known and one not in new:
                new.append(one)
        taken = {statement_key(entry.fact.text) for entry in await self._entries()}
        for one in new:
            text = f"{one['from']} {one['relationType']} {one['to']}"
            if statement_key(text) in taken:
                # Another relation, or an observation, reads the same.
                text = f"{one['from']} → {one['relationType']} → {one['to']}"
            taken.add(statement_key(text))
            draft = Draft(text, category=_RELATION, subject=self._subject(one["from"]))
            await self.memories.add(self.user, draft, {_RELATION: cast("JsonValue", dict(one))})
        return _json_answer("relations", new)

    async def add_observations(self, observations: Sequence[ObservationsOf]) -> ToolAnswer:
        held = {one["name"]: one["observations"] for one in (await self.graph())["entities"]}
        for one in observations:
            if one["entityName"] not in held:
                raise NotFoundError(f"Entity with name {one['entityName']} not found")
        results: list[dict[str, Any]] = []
        for one in observations:
            name = one["entityName"]
            added = [content for content in one["contents"] if content not in held[name]]
            held[name] = [*held[name], *added]
            await self._observe(name, added)
            results.append({"entityName": name, "addedObservations": added})
        return _json_answer("results", results)

    async def delete_entities(self, names: Sequence[str]) -> ToolAnswer:
        for entry in await self._entries():
            relation = _relation(entry)
            ends = {self._name(entry)} if relation is None else {relation["from"], relation["to"]}
            if ends & set(names):
                await self.memories.delete(entry.id)
        await self._write([ItemWrite(_ENTITIES, name, None) for name in names])
        return _done("Entities deleted successfully")

    async def delete_observations(self, deletions: Sequence[Deletion]) -> ToolAnswer:
        gone = {(one["entityName"], text) for one in deletions for text in one["observations"]}
        for entry in await self._entries():
            if _relation(entry) is None and (self._name(entry), entry.fact.text) in gone:
                await self.memories.delete(entry.id)
        return _done("Observations deleted successfully")

    async def delete_relations(self, relations: Sequence[Relation]) -> ToolAnswer:
        for entry in await self._entries():
            if _relation(entry) in relations:
                await self.memories.delete(entry.id)
        return _done("Relations deleted successfully")

    # -- reading -------------------------------------------------------------------------------------------------------

    async def read_graph(self) -> ToolAnswer:
        return _graph_answer(await self.graph())

    async def search_nodes(self, query: str) -> ToolAnswer:
        """Entities that hold the query's text, as in the reference server, and then those whose facts answer it by meaning."""
        graph, wanted = await self.graph(), query.casefold()
        names = {
            one["name"]
            for one in graph["entities"]
            if any(
                wanted in text.casefold() for text in (one["name"], one["entityType"], *one["observations"])
            )
        }
        if not names and wanted.strip():
            found = await self.memories.ranked(query, await self._entries())
            names = {self._name(entry) for entry, _ in found}
        return _graph_answer(_part(graph, names))

    async def open_nodes(self, names: Sequence[str]) -> ToolAnswer:
        return _graph_answer(_part(await self.graph(), names))

    async def graph(self) -> Graph:
        marks = await self._items.under(self.memories.owner(self.user), _ENTITIES, now=self._now())
        types = {item.key: item.value["entityType"] for item in sorted(marks, key=lambda item: item.created)}
        observations: dict[str, list[str]] = {name: [] for name in types}
        relations: list[Relation] = []
        for entry in await self._entries():
            if (relation := _relation(entry)) is not None:
                relations.append(relation)
            else:
                observations.setdefault(self._name(entry), []).append(entry.fact.text)
        entities = [
            Entity(name=name, entityType=types.get(name) or self._type(name), observations=said)
            for name, said in observations.items()
        ]
        return Graph(entities=entities, relations=relations)

    # -- facts and items -----------------------------------------------------------------------------------------------

    @property
    def _items(self) -> Any:
        return self.memories.memory.engine.store.items

    def _now(self) -> Any:
        return self.memories.memory.engine.clock.now()

    async def _entries(self) -> list[Entry]:
        return await self.memories.of([self.user])

    async def _observe(self, name: str, texts: Iterable[str]) -> None:
        for text in texts:
            await self.memories.add(self.user, Draft(text, subject=self._subject(name)))

    async def _write(self, writes: Sequence[ItemWrite]) -> None:
        await self._items.write(self.memories.owner(self.user), writes, now=self._now())

    def _subject(self, name: str) -> str | None:
        return None if name == self.user else name

    def _name(self, entry: Entry) -> str:
        subject = entry.fact.subject
        return self.user if subject in {None, USER} else subject or self.user

    def _type(self, name: str) -> str:
        return _USER_TYPE if name == self.user else _UNNAMED_TYPE


def _relation(entry: Entry) -> Relation | None:
    kept = cast("dict[str, str] | None", entry.attributes.get(_RELATION))
    return (
        None
        if kept is None
        else cast("Relation", {name: kept[name] for name in ("from", "to", "relationType")})
    )


def _part(graph: Graph, names: Iterable[str]) -> Graph:
    """These entities, and the relations that begin or end at one of them."""
    wanted = set(names)
    return Graph(
        entities=[one for one in graph["entities"] if one["name"] in wanted],
        relations=[one for one in graph["relations"] if wanted & {one["from"], one["to"]}],
    )


def _json_answer(name: str, value: Sequence[Any]) -> ToolAnswer:
    return ToolAnswer(json.dumps(value, indent=2, ensure_ascii=False), {name: list(value)})


def _graph_answer(graph: Graph) -> ToolAnswer:
    return ToolAnswer(json.dumps(graph, indent=2, ensure_ascii=False), dict(graph))


def _done(message: str) -> ToolAnswer:
    return ToolAnswer(message, {"success": True, "message": message})


_Tool = tuple[Callable[..., Awaitable[ToolAnswer]], Mapping[str, TypeAdapter[Any]]]
#: The nine tools: what they do, and the arguments they take.
TOOLS: Mapping[str, _Tool] = {
    "create_entities": (KnowledgeGraph.create_entities, {"entities": TypeAdapter(list[Entity])}),
    "create_relations": (KnowledgeGraph.create_relations, {"relations": TypeAdapter(list[Relation])}),
    "add_observations": (
        KnowledgeGraph.add_observations,
        {"observations": TypeAdapter(list[ObservationsOf])},
    ),
    "delete_entities": (KnowledgeGraph.delete_entities, {"entityNames": TypeAdapter(list[str])}),
    "delete_observations": (KnowledgeGraph.delete_observations, {"deletions": TypeAdapter(list[Deletion])}),
    "delete_relations": (KnowledgeGraph.delete_relations, {"relations": TypeAdapter(list[Relation])}),
    "read_graph": (KnowledgeGraph.read_graph, {}),
    "search_nodes": (KnowledgeGraph.search_nodes, {"query": TypeAdapter(str)}),
    "open_nodes": (KnowledgeGraph.open_nodes, {"names": TypeAdapter(list[str])}),
}
