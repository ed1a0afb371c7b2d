"""Row-level security, the database itself keeps tenants apart; and which erasures have reached places outside the database."""  # noqa: INP001 - found by Alembic as a file

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
