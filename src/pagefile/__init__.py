"""Virtual memory for LLM agents: everything stays on disk, every model call gets the window that fits."""
