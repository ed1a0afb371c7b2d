"""Google's Agent Development Kit: a plug-in that gives each model call its window, a session service and a memory service.

```python
runner = Runner(
    app_name="shop",
    agent=agent,
    session_service=PagefileSessionService(memory),
    memory_service=PagefileMemoryService(memory),
    plugins=[PagefilePlugin(memory)],
)
```

Each works without the others. ADK keeps apps apart: an app is a tenant, unless `tenant` is given.
"""

from pagefile.errors import MissingExtraError

try:
    __import__("google.adk")  # checked here once for every module of this package
except ImportError as error:
    raise MissingExtraError.of("adk", "The Google ADK integration") from error

from pagefile.integrations.adk.memories import PagefileMemoryService
from pagefile.integrations.adk.plugin import PagefilePlugin
from pagefile.integrations.adk.sessions import PagefileSessionService

__all__ = ["PagefileMemoryService", "PagefilePlugin", "PagefileSessionService"]
