"""What a page says about itself while out of the window: 200 to 500 characters, written without a model."""

from pagefile.text.synopsis.kinds import Kind, kind
from pagefile.text.synopsis.writer import synopsis

__all__ = ["Kind", "kind", "synopsis"]
