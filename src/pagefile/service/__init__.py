"""The HTTP service: Memory's verbs as JSON over HTTP, for agents that are not written in Python."""
