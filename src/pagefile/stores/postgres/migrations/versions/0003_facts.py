"""What facts speak of, and every change of them."""  # noqa: INP001 - found by Alembic as a file

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
