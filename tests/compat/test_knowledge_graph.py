"""The MCP reference memory server's nine tools: beside a model of that server, and what Pagefile adds."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import BlockingMemory, Memory
from pagefile.compat.knowledge_graph import TOOLS, KnowledgeGraph
from pagefile.errors import InvalidArgumentError, NotFoundError

NAMES = ("Anna", "Bern", "project x")


class Reference:
    """What the reference server does, on two lists."""

    def __init__(self):
        self.entities, self.relations = [], []

    def find(self, name):
        return next((one for one in self.entities if one["name"] == name), None)

    def create_entities(self, entities):
        new = []
        for one in entities:
            if self.find(one["name"]) is None:
                new.append(one)
                self.entities.append({**one, "observations": list(dict.fromkeys(one["observations"]))})
        return {"entities": new}

    def create_relations(self, relations):
        new = []
        for one in relations:
            if one not in self.relations:
                self.relations.append(one)
                new.append(one)
        return {"relations": new}

    def add_observations(self, observations):
        if any(self.find(one["entityName"]) is None for one in observations):
            raise NotFoundError("not found")
        results = []
        for one in observations:
            held = self.find(one["entityName"])["observations"]
            added = [text for text in one["contents"] if text not in held]
            held += added
            results.append({"entityName": one["entityName"], "addedObservations": added})
        return {"results": results}

    def delete_entities(self, entityNames):  # noqa: N803 - as the tool has it
        self.entities = [one for one in self.entities if one["name"] not in entityNames]
        self.relations = [one for one in self.relations if not {one["from"], one["to"]} & set(entityNames)]

    def delete_observations(self, deletions):
        for one in deletions:
            if (entity := self.find(one["entityName"])) is not None:
                entity["observations"] = [
                    text for text in entity["observations"] if text not in one["observations"]
                ]

    def delete_relations(self, relations):
        self.relations = [one for one in self.relations if one not in relations]


def ordered(graph):
    entities = [(one["name"], one["entityType"], sorted(one["observations"])) for one in graph["entities"]]
    return sorted(entities), sorted(sorted(one.items()) for one in graph["relations"])


_TEXTS = st.lists(st.sampled_from(["speaks Greek", "joined in May", "has a dog"]), max_size=3, unique=True)
_ENTITY = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "entityType": st.sampled_from(["person", "place"]),
        "observations": _TEXTS,
    }
)
_RELATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "from": st.sampled_from(NAMES),
            "to": st.sampled_from(NAMES),
            "relationType": st.sampled_from(["works in", "likes"]),
        }
    ),
    max_size=2,
)
_NAMED = st.sampled_from(NAMES)
_CALLS = st.one_of(
    st.tuples(st.just("create_entities"), st.fixed_dictionaries({"entities": st.lists(_ENTITY, max_size=3)})),
    st.tuples(st.just("create_relations"), st.fixed_dictionaries({"relations": _RELATIONS})),
    st.tuples(
        st.just("add_observations"),
        st.fixed_dictionaries(
            {
                "observations": st.lists(
                    st.fixed_dictionaries({"entityName": _NAMED, "contents": _TEXTS}), max_size=2
                )
            }
        ),
    ),
    st.tuples(
        st.just("delete_entities"), st.fixed_dictionaries({"entityNames": st.lists(_NAMED, max_size=2)})
    ),
    st.tuples(
        st.just("delete_observations"),
        st.fixed_dictionaries(
            {
                "deletions": st.lists(
                    st.fixed_dictionaries({"entityName": _NAMED, "observations": _TEXTS}), max_size=2
                )
            }
        ),
    ),
    st.tuples(st.just("delete_relations"), st.fixed_dictionaries({"relations": _RELATIONS})),
)


@given(st.lists(_CALLS, max_size=8))
@settings(max_examples=40, deadline=None)
def test_the_answers_are_those_of_the_reference_server(calls):
    with BlockingMemory.open("memory://", embedder="none") as memory:
        graph, reference = KnowledgeGraph.of(memory.inner, "ada"), Reference()

        def called(tool, arguments):
            return memory.loop.wait(lambda: graph.call(tool, arguments))

        for tool, arguments in calls:
            try:
                expected = getattr(reference, tool)(**arguments)
            except NotFoundError:
                with pytest.raises(NotFoundError, match="Entity with name"):
                    called(tool, arguments)
                continue
            answer = called(tool, arguments)
            if expected is None:
                assert answer.structured == {"success": True, "message": answer.text}
            else:
                assert answer.structured == expected
                assert json.loads(answer.text) == next(iter(expected.values()))
            state = {"entities": reference.entities, "relations": reference.relations}
            assert ordered(called("read_graph", {}).structured) == ordered(state)


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as opened:
        yield opened


async def test_search_and_open_lead_to_relations(memory):
    graph = KnowledgeGraph.of(memory, "ada")
    entities = [
        {"name": "Anna", "entityType": "person", "observations": ["speaks Greek"]},
        {"name": "Bern", "entityType": "city", "observations": []},
    ]
    await graph.call("create_entities", {"entities": entities})
    relation = {"from": "Anna", "to": "Bern", "relationType": "lives in"}
    await graph.call("create_relations", {"relations": [relation]})
    for tool, arguments in (("search_nodes", {"query": "GREEK"}), ("open_nodes", {"names": ["Anna"]})):
        found = (await graph.call(tool, arguments)).structured
        assert ([one["name"] for one in found["entities"]], found["relations"]) == (["Anna"], [relation])


async def test_what_it_writes_is_in_windows_and_can_be_undone(memory):
    graph = KnowledgeGraph.of(memory, "ada")
    entities = [{"name": "Anna", "entityType": "person", "observations": ["is allergic to penicillin"]}]
    await graph.call("create_entities", {"entities": entities})
    window = await memory.conversation("c", user_id="ada").context("What is Anna allergic to?")
    assert "Anna: is allergic to penicillin" in str(window.messages)
    await memory.undo("ada")
    assert (await graph.call("open_nodes", {"names": ["Anna"]})).structured["entities"][0][
        "observations"
    ] == []


async def test_what_is_known_about_the_user_is_an_entity(memory):
    await memory.remember("The user lives in Bern", user_id="ada")
    graph = KnowledgeGraph.of(memory, "ada")
    found = (await graph.call("read_graph", {})).structured
    assert found["entities"] == [
        {"name": "ada", "entityType": "person", "observations": ["The user lives in Bern"]}
    ]
    await graph.call(
        "add_observations", {"observations": [{"entityName": "ada", "contents": ["The user sails"]}]}
    )
    assert [fact.text for fact in await memory.facts("ada")] == ["The user lives in Bern", "The user sails"]


async def test_users_never_mix(memory):
    entities = [{"name": "Anna", "entityType": "person", "observations": ["x y z"]}]
    await KnowledgeGraph.of(memory, "ada").call("create_entities", {"entities": entities})
    other = (await KnowledgeGraph.of(memory, "bob").call("read_graph", {})).structured
    assert other == {"entities": [], "relations": []}


@pytest.mark.parametrize("tool", [name for name, (_, takes) in TOOLS.items() if takes])
async def test_arguments_that_do_not_fit_are_explained(memory, tool):
    graph = KnowledgeGraph.of(memory, "ada")
    for arguments in ({}, {next(iter(TOOLS[tool][1])): 7}):
        with pytest.raises(InvalidArgumentError, match=tool):
            await graph.call(tool, arguments)
    with pytest.raises(NotFoundError, match="create_entities"):
        await graph.call("drop_everything", {})


async def test_relations_that_read_the_same_are_two(memory):
    graph = KnowledgeGraph.of(memory, "ada")
    relations = [
        {"from": "A", "relationType": "b", "to": "c d"},
        {"from": "A", "relationType": "b c", "to": "d"},
    ]
    await graph.call("create_relations", {"relations": relations})
    assert relations == [
        {name: one[name] for name in ("from", "relationType", "to")}
        for one in (await graph.graph())["relations"]
    ]
