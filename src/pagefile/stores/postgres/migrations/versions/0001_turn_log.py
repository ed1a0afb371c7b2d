"""The whole schema: turn log, archive, facts, calls, sessions."""  # noqa: INP001 - found by Alembic as a file

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
