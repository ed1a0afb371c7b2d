"""The URLs of the inspector. Ids may contain anything, including slashes, so they go into the query string."""

HOME = "/"
BASE = "/inspector"
CONVERSATIONS = f"{BASE}/conversations"
CONVERSATION = f"{BASE}/conversation"
CALLS = f"{BASE}/calls"
CALL = f"{BASE}/call"
REPLAY = f"{BASE}/replay"
RECALL = f"{BASE}/recall"
ARCHIVE = f"{BASE}/archive"
PAGE = f"{BASE}/page"
FACTS = f"{BASE}/facts"
SESSIONS = f"{BASE}/sessions"
GATEWAY = f"{BASE}/gateway"
METRICS = f"{BASE}/metrics"
CHAT = f"{BASE}/chat"
ERASE = f"{BASE}/erase"
LOGIN = f"{BASE}/login"
LOGOUT = f"{BASE}/logout"
DEMO = f"{BASE}/demo"
STYLE = f"{BASE}/inspector.css"
SCRIPT = f"{BASE}/inspector.js"
ICON = f"{BASE}/icon.svg"
#: The chat's own stream: like `/v1/chat/stream`, but with the scripted model if no other is configured.
STREAM = f"{BASE}/chat/stream"


def is_inspector(path: str) -> bool:
    return path in {HOME, twin(HOME), BASE} or path.startswith(f"{BASE}/")


def name(path: str) -> str:
    """The last part of a path, by which the texts name the page."""
    return path.rpartition("/")[2]


def twin(path: str) -> str:
    return "/index.json" if path == HOME else f"{path}.json"
