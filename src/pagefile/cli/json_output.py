"""JSON for scripts: what `--json` prints. Apart from the rest, since only it needs the schemas."""

import json
import sys

from pagefile.record_json import to_json
from pagefile.window.receipt import Window
from pagefile.wire.windows import WindowOut


def print_json(value: object) -> None:
    """Print a value as JSON; characters that stdout cannot encode are escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    shown = WindowOut.of(value, parts=True) if isinstance(value, Window) else value
    sys.stdout.write(json.dumps(to_json(shown), ensure_ascii=not utf8, indent=2) + "\n")
