"""The URLs of the inspector. Ids may contain anything, including slashes, so they go into the query string."""

HOME = "/"
BASE = "/inspector"
CONVERSATIONS = f"{BASE}/conversations"
CONVERSATION = f"{BASE}/conversation"
CALLS = f"{BASE}/calls"
CALL = f"{BASE}/call"
REPLAY = f"{BASE}/replay"
EXPERIMENTS = f"{BASE}/experiments"
EXPERIMENT = f"{BASE}/experiment"
SEARCH = f"{BASE}/search"
LIVE = f"{BASE}/live"
TRACE = f"{BASE}/trace"
NOTE = f"{BASE}/note"
RECALL = f"{BASE}/recall"
ARCHIVE = f"{BASE}/archive"
PAGE = f"{BASE}/page"
FACTS = f"{BASE}/facts"
SESSIONS = f"{BASE}/sessions"
GATEWAY = f"{BASE}/gateway"
METRICS = f"{BASE}/metrics"
SETTINGS = f"{BASE}/settings"
CHAT = f"{BASE}/chat"
#: Sets the model that answers in the chat, until the process ends.
MODEL = f"{BASE}/model"
ERASE = f"{BASE}/erase"
#: The API reference, which everybody may read.
DOCS = "/docs"
LOGIN = f"{BASE}/login"
LOGOUT = f"{BASE}/logout"
DEMO = f"{BASE}/demo"
STYLE = f"{BASE}/inspector.css"
SCRIPT = f"{BASE}/inspector.js"
ICON = f"{BASE}/icon.svg"
#: What browsers ask for beside a page without an icon, such as JSON.
FAVICON = "/favicon.ico"
#: The chat's own stream: like `/v1/chat/stream`, but with the scripted model if no other is configured.
STREAM = f"{BASE}/chat/stream"


def is_inspector(path: str) -> bool:
    return path in {HOME, twin(HOME), BASE} or path.startswith(f"{BASE}/")


def is_page(path: str) -> bool:
    """Whether it is an address of a page, or of the API reference."""
    return is_inspector(path) or path.startswith(f"{DOCS}/")


def name(path: str) -> str:
    """The last part of a path, by which the texts name the page."""
    return path.rpartition("/")[2]


def twin(path: str) -> str:
    return "/index.json" if path == HOME else f"{path}.json"
