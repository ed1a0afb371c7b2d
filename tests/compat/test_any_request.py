"""Whatever is sent to a vendor's face, the answer is one of the vendor's, and never a failure of the service."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefile import Settings
from pagefile.compat.agent_memory import AgentMemory
from pagefile.compat.mem0 import Mem0
from pagefile.compat.memory_stores import MemoryStores
from pagefile.settings import EmbedderSettings
from tests.acceptance.http_server import listening

_APIS = (Mem0, AgentMemory, MemoryStores)
_ROUTES = [(api, *route.split(" ", 1)) for api in _APIS for route in api.routes]
_FIELDS = [
    "messages", "filters", "query", "user_id", "metadata", "text", "memories", "memory_id", "session", "policy", "name",
    "path", "content", "precondition", "limit", "offset", "page", "page_size", "top_k", "threshold", "timestamp",
    "categories", "start_date", "topics", "created_at", "distance_threshold", "long_term_search", "ttl_seconds", "infer",
    "view", "depth", "context_window_max", "memory_ids", "expiration_date", "pinned_ids", "data", "id", "namespace",
]  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats(allow_nan=False) | st.text(max_size=20)
    | st.sampled_from(["ada", "1", "-1", "mem_x", "turn_e30", "/a.md", "full"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*_FIELDS, "AND", "OR", "eq", "in", "gte", "any"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
_BODIES = st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=6)
_SEGMENTS = st.sampled_from(["ada", "x", "turn_e30", "turn_W10", "mem_1", "%00", "%2e%2e", "中", "a" * 300])
_PARAMS = st.dictionaries(st.sampled_from(_FIELDS), st.text(max_size=10), max_size=3)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    where = tmp_path_factory.mktemp("any")
    with listening(Settings(url=f"sqlite:///{where}/m.db", embedder=EmbedderSettings(name="none"))) as url:
        yield url


@given(st.sampled_from(_ROUTES), _SEGMENTS, _BODIES | _VALUES, _PARAMS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_answered(address, route, segment, body, params):
    api, method, path = route
    for name in ("memory_id", "store_id", "version_id", "session_id", "view_id", "task_id", "kind", "name"):
        path = path.replace(f"{{{name}}}", segment)
    # As lenient writers of JSON have it, infinite numbers included.
    content, kind = json.dumps(body), {"content-type": "application/json"}
    response = httpx.request(
        method, f"{address}{api.prefix}{path}", content=content, headers=kind, params=params
    )
    assert response.status_code < 500 or response.status_code == 501, (
        method,
        path,
        body,
        params,
        response.text,
    )
    json.loads(response.content)
