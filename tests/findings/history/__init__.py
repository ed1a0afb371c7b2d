"""What strangers found in documents 001 (short-term memory) and 002 (conversation history)."""
