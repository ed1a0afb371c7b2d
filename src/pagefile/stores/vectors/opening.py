"""Finds the home of vectors that a URL names."""

from pagefile.errors import SettingsError
from pagefile.ports import Store, VectorHome

_KNOWN = (
    "milvus://host:19530, milvus://host:19530/database, milvus:///relative.db, milvus:////absolute/path.db, "
    "'none' for no vectors at all, or nothing for the home in the store's own database"
)


def open_vectors(url: str | None, store: Store, *, cache_bytes: int | None = None) -> VectorHome | None:
    """The home of this URL, which connects when it is first used; close it after use.

    Nothing means the home in the store's own database, if it has one; "none" means no vectors. `cache_bytes` bounds what a
    home keeps in memory to search there.
    """
    if url is None:
        return store.vectors(cache_bytes=cache_bytes)
    if url == "none":
        return None
    scheme, separator, _ = url.partition("://")
    if not separator or scheme != "milvus":
        # What was meant as a URL may hold a password.
        raise SettingsError(f"No home of vectors is known for this URL: use one of {_KNOWN}.")
    from pagefile.stores.milvus import MilvusVectors, Place  # noqa: PLC0415 - the extra milvus

    return MilvusVectors(Place.of(url))
