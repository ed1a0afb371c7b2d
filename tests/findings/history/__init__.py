"""What strangers found in short-term memory and in conversation history."""
