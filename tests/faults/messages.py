"""Messages that the processes of these tests record."""

#: Words are enough, and small windows make checkpoints while turns come in.
PLAIN = {"embedder__name": "none", "window_tokens": 2000, "recent_turns": 2, "archive__page_from": 300}
