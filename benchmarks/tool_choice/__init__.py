"""Requests for which one of the MCP tools is right, or none, and what a model called."""
