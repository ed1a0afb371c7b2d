"""The paths that belong to providers: their requests pass to them, with their own keys."""

_VERSION = "/v1/"
#: What OpenAI and Anthropic have under their version, without what administers an account. Ours are elsewhere, so that a misspelt
#: route of ours goes nowhere.
_RESOURCES = frozenset(
    {
        "agents", "assistants", "audio", "batches", "chatkit", "completions", "containers", "content_provenance_checks",
        "conversations", "decisions", "deployment_runs", "deployments", "dreams", "embeddings", "environments", "evals", "files",
        "fine_tuning", "images", "live", "messages", "models", "moderations", "realtime", "responses", "safety", "sessions",
        "skills", "threads", "tunnels", "uploads", "user_profiles", "vaults", "vector_stores", "videos",
    }
)  # fmt: skip
_CHAT = "/v1/chat/completions"
#: What agents call, and what no path of ours begins with.
_WITHOUT_VERSION = frozenset({"completions", "embeddings", "messages", "models", "responses"})


def is_vendors(path: str) -> bool:
    """Whether a path is a provider's."""
    if path == _CHAT or path.startswith(f"{_CHAT}/"):
        return True
    return path.startswith(_VERSION) and path.removeprefix(_VERSION).partition("/")[0] in _RESOURCES


def versioned(path: str) -> str:
    """The path with one version: clients disagree on whether a base URL ends in it."""
    if path == "/chat/completions" or path.partition("/")[2].partition("/")[0] in _WITHOUT_VERSION:
        return f"/v1{path}"
    twice = path.startswith("/v1/v1/") and is_vendors(path.removeprefix("/v1"))
    return path.removeprefix("/v1") if twice else path


#: Where other vendors' memory APIs are: their clients always send a key, if only because they refuse to start without one.
FACES = ("/mem0", "/agent-memory", "/v1/memory_stores")


def may_have_foreign_keys(path: str) -> bool:
    """Whether the usual headers may hold a key that is not meant for us."""
    return is_vendors(path) or any(path == face or path.startswith(f"{face}/") for face in FACES)
