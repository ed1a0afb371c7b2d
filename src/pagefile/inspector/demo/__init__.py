"""Conversations to look at: `pagefile demo` writes them, and they go again without a trace."""

from pagefile.inspector.demo.writing import DemoReport, demo_present, fill_demo, remove_demo

__all__ = ["DemoReport", "demo_present", "fill_demo", "remove_demo"]
