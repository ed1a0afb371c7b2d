"""What goes into a model call: pure decisions over candidates and a token budget. No await, no I/O, no clock."""
