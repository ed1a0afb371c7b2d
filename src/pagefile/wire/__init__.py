"""The HTTP schema: requests and responses of the service and its clients, as pydantic models.

Ids go into bodies and query strings, never into paths: they may contain `/`, `:` and any script.
"""
