"""Real servers for tests and benchmarks, started from pip wheels on loopback."""
