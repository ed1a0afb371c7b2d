"""The paths that belong to providers: their requests pass to them, with their own keys."""

_VERSION = "/v1/"
#: What OpenAI and Anthropic have under their version. Ours are elsewhere, so that a misspelt route of ours goes nowhere.
_RESOURCES = frozenset(
    {
        "audio", "batches", "completions", "containers", "conversations", "embeddings", "files", "fine_tuning", "images",
        "messages", "models", "moderations", "responses", "skills", "uploads", "vector_stores", "videos",
    }
)  # fmt: skip
_CHAT = "/v1/chat/completions"


def is_vendors(path: str) -> bool:
    """Whether a path is a provider's."""
    if path == _CHAT or path.startswith(f"{_CHAT}/"):
        return True
    return path.startswith(_VERSION) and path.removeprefix(_VERSION).partition("/")[0] in _RESOURCES


def versioned(path: str) -> str:
    """The path with one version: clients disagree on whether a base URL ends in it."""
    if is_vendors(f"/v1{path}"):
        return f"/v1{path}"
    twice = path.startswith("/v1/v1/") and is_vendors(path.removeprefix("/v1"))
    return path.removeprefix("/v1") if twice else path


#: Where other vendors' memory APIs are: their clients always send a key, if only because they refuse to start without one.
FACES = ("/mem0", "/agent-memory", "/v1/memory_stores")


def may_have_foreign_keys(path: str) -> bool:
    """Whether the usual headers may hold a key that is not meant for us."""
    return is_vendors(path) or any(path == face or path.startswith(f"{face}/") for face in FACES)
