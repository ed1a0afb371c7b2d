"""Vectors in Milvus, a server or a file, through pymilvus."""

from importlib.util import find_spec

from pagefile.errors import MissingExtraError

if find_spec("pymilvus") is None:
    raise MissingExtraError.of("milvus", "A vector index in Milvus")

from pagefile.stores.milvus.driver import Place
from pagefile.stores.milvus.index import MilvusVectors

__all__ = ["MilvusVectors", "Place"]
