"""Integrations with other frameworks: one module or package each; importing this package loads none of them.

A new one builds on `recorder` (turns the framework's messages into recorded turns), `tools` (the tools that every framework offers
to a model), `shortening` (cuts results that are too long for a request) and `fail_open` (a memory that is down never costs the run).
"""
