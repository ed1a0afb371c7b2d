"""Sample conversations: `pagefile demo` writes them, and can remove them without a trace."""

from pagefile.inspector.demo.writer import DemoReport, demo_present, fill_demo, remove_demo

__all__ = ["DemoReport", "demo_present", "fill_demo", "remove_demo"]
