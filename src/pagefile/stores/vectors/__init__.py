"""Homes of vectors: what all of them do alike, and the door to them."""

from pagefile.stores.vectors.opening import open_vectors

__all__ = ["open_vectors"]
