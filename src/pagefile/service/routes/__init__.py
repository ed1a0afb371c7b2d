"""The routes: each reads its request, calls one verb of Memory, and returns the result."""
