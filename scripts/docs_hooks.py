"""What mkdocs is told besides mkdocs.yml: folders in the nav, and links that lead out of docs/.

`decisions/` in the nav stands for every page of that folder, under its own title. A page may link to a file of the repository
(`../compose.yaml`), or to a page that `exclude_docs` leaves out: in a checkout that works, on the site there is no such
file, so its name is shown instead. A link to a file that does not exist breaks the build either way.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

#: Found last by a search: a user looks for a how-to before a decision.
_FOR_MAINTAINERS = ("documents/", "decisions/", "traceability.md", "renamed.md")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Write folders of the nav out."""
    config.nav = [_written_out(item, Path(config.docs_dir)) for item in config.nav]
    return config


def _written_out(item: Any, docs: Path) -> Any:
    match item:
        case dict():
            return {title: _written_out(inner, docs) for title, inner in item.items()}
        case list():
            return [_written_out(inner, docs) for inner in item]
        case str() if item.endswith("/"):
            found = sorted((docs / item).glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
            return [str(path.relative_to(docs)) for path in found]
        case _:
            return item


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Show the name of a file that is in the repository and not on the site; rank what is for maintainers last in the search."""
    if page.file.src_uri.startswith(_FOR_MAINTAINERS):
        page.meta["search"] = {"boost": 0.2}
    docs = Path(config.docs_dir).resolve()
    here = (docs / page.file.src_uri).parent

    def shown(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        if target.is_relative_to(docs) and not _left_out(target.relative_to(docs), files):
            return found[0]
        if not target.exists():
            raise PluginError(f"{page.file.src_uri}: there is no {found[2]}")
        name = str(target.relative_to(docs.parent))
        text = found[1].strip("`")
        return f"`{name}`" if text in {name, target.name, found[2]} else f"{found[1]} (`{name}`)"

    return _LINK.sub(shown, markdown)


def _left_out(path: Path, files: Any) -> bool:
    """Whether a page is in docs/ and not on the site."""
    file = files.get_file_from_path(path.as_posix())
    return file is not None and file.inclusion.is_excluded()
