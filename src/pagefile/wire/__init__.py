"""The HTTP schema: what the service and its clients say to each other, as pydantic models.

Ids stand in bodies and query strings, never in paths: they may hold `/`, `:` and any script.
"""
