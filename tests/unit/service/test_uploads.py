"""What killed processes leave of uploads."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pagefile.service.transfer import remove_left_uploads, upload_folder


def test_only_what_nobody_works_on_is_removed(tmp_path, monkeypatch):
    """Folders of this process and of others that run stay; those of processes that are no more go, and those of older versions."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [
        f"pagefile-import-{gone.pid}-x",
        "pagefile-import-old",
        f"pagefile-import-{os.getppid()}-x",
        "other",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "upload.jsonl").write_text("words")
    with upload_folder() as mine:
        remove_left_uploads()
        left = {path.name for path in tmp_path.iterdir()}
        assert {names[2], "other", Path(mine).name} == left
    remove_left_uploads()
    assert {names[2], "other"} == {path.name for path in tmp_path.iterdir()}
