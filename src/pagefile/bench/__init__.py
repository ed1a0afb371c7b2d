"""The benchmarks users can run themselves: every speed is a ratio to something measured in the same run."""
