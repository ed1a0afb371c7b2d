"""mem0: the memories that `get_all()` returns, from the open-source package or the hosted service."""

from collections import Counter
from typing import cast

from pagefile.errors import TransferError
from pagefile.integrations.moving.shapes import Brought, BroughtFact, items, mapping, moment, text


def from_mem0(data: object) -> Brought:
    """The memories as facts, from `{"results": […]}` or the list alone.

    A memory of an agent or a run without a user goes to the user it is imported for. Graph relations are left out: mem0
    derived them from the same memories.
    """
    listed: object = cast("object", data) if isinstance(data, list) else mapping(data).get("results")
    if not isinstance(listed, list):
        raise TransferError(
            'This is no dump of mem0: it holds no list of "results". Write what get_all() returns.'
        )
    facts: list[BroughtFact] = []
    left_out: Counter[str] = Counter()
    for raw in cast("list[object]", listed):
        memory = mapping(raw)
        said = text(memory.get("memory"))
        if said is None:
            left_out["memories without text"] += 1
            continue
        if memory.get("role") == "assistant":
            # Stored verbatim (`infer=False`): not a statement about the user.
            left_out["words of the assistant"] += 1
            continue
        if memory.get("expiration_date"):
            left_out["expiry dates"] += 1
        facts.append(
            BroughtFact(
                said, text(memory.get("user_id")), moment(memory.get("created_at")), _category(memory)
            )
        )
    relations = len(items(mapping(cast("object", data)).get("relations")))
    if relations:
        left_out["graph relations"] = relations
    return Brought(facts=tuple(facts), left_out=dict(left_out))


def _category(memory: object) -> str | None:
    fields = mapping(memory)
    named = [*items(fields.get("categories")), mapping(fields.get("metadata")).get("category")]
    return next((name for name in map(text, named) if name), None)
