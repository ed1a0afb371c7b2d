"""What versions before kept in Milvus: one collection a model, with the texts of turns in it."""

from pagefile.stores.milvus.driver import columns
from pagefile.stores.milvus.schema import MAKER_PROPERTY, collection_of, model_text
from pagefile.testing.contracts.vectors import MODEL

_TEXTS = ("id", "conversation_id", "user_message", "assistant_message", "tenant", "user_id", "turn_id")
_KEYS = ("tenant_key", "user_key", "conversation_key")


def old_collection(client):
    """Two turns of a user and one of nobody; and a collection of somebody else that begins with the same word."""
    for name, owned in (
        (collection_of(MODEL, "conversation_episodes"), True),
        ("conversation_episodes", False),
    ):
        texts = dict.fromkeys((*_TEXTS, *_KEYS), 1020)
        schema, index = columns(texts, ("created_at", "seq"), MODEL.dimension)
        properties = {MAKER_PROPERTY: model_text(MODEL)} if owned else {}
        client.create_collection(name, schema=schema, index_params=index, properties=properties)
        for number, (user, seq) in enumerate([("ada", 1), ("ada", 2), ("", 1)]):
            row = dict.fromkeys(_KEYS, "digest") | {"created_at": 1, "seq": seq, "embedding": [1, 0, 0, 0]}
            words = "OLDWORDS" if owned else "THEIRS"
            said = [f"{number:032x}", f"chat of {user}", words, "ok", "tenant", user, f"turn-{seq}"]
            client.insert(name, [row | dict(zip(_TEXTS, said, strict=True))])
        if owned:
            # Rows written out, and rows that are not, are copied alike.
            client.flush(name)
