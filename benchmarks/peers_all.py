"""Everybody who is compared in `pagefile bench peers`, Pagefile first."""

from importlib.metadata import PackageNotFoundError, version

from benchmarks.peers_base import Peer
from benchmarks.peers_memories import ChromaPeer, LangGraphStorePeer, LlamaIndexPeer, Mem0Peer
from benchmarks.peers_ours import PagefilePeer
from benchmarks.peers_windows import EditingPeer, SummarizingPeer, TrimPeer

PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        PagefilePeer,
        Mem0Peer,
        LangGraphStorePeer,
        ChromaPeer,
        LlamaIndexPeer,
        TrimPeer,
        SummarizingPeer,
        EditingPeer,
    )
}
OURS = PagefilePeer.name


def version_of(peer: type[Peer]) -> str | None:
    """The version that is installed, None when it is not."""
    try:
        return version(peer.package or "pagefile")
    except PackageNotFoundError:
        return None
