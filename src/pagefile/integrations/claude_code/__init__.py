"""What Claude Code's hooks do for a memory, in whichever process they run: that of the Agent SDK, or the service."""
