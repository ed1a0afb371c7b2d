"""The visible text of HTML as Markdown, and XML with an element on each line."""

import html
import re
from string import ascii_lowercase, ascii_uppercase

from pagefile.text.reading.frames import Frame, Transcript

#: A tag, an entity, white space, or the beginning of a comment.
_MARK = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w:-]*+)(?P<given>[^<>]*+)>|(?P<entity>&#?\w{1,20};)|(?P<space>\s++)"
    r"|(?P<comment><!--)|(?P<other><[!?][^<>]*+>)"
)
_HREF = re.compile(r"href\s*+=\s*+[\"']?+(https?://[^\s\"'<>]{1,120})(?=[\"'\s>]|\Z)", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "svg", "noscript", "template", "iframe"})
_LINES = frozenset(
    [
        "p",
        "div",
        "li",
        "tr",
        "ul",
        "ol",
        "section",
        "article",
        "table",
        "head",
        "body",
        "header",
        "footer",
        "nav",
        "main",
        "aside",
        "form",
        "blockquote",
        "pre",
        "dl",
        "dt",
        "dd",
        "br",
        "hr",
        "figure",
        "figcaption",
        "title",
        "option",
        "details",
        "summary",
        "thead",
        "tbody",
        "caption",
        "fieldset",
    ]
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | {"title": "# "}
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_XML_BREAK = re.compile(r">(\s*+)(?=<)")


def visible(frame: Frame) -> Frame:
    """HTML as the text that a reader sees, a line for each block or row."""
    written = _Page(frame)
    place = 0
    while (mark := _MARK.search(frame.text, place)) is not None:
        written.copy(place, mark.start())
        place = written.mark(mark)
    return written.copy(place, len(frame.text)).frame(len(frame.text), frame.where)


class _Page(Transcript):
    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        # Lower case of the same length, character by character.
        self._folded = frame.text.translate(_LOWER)
        self._unclosed = set[str]()
        self._verbatim = 0
        self._link = ""
        #: The row of a table that is being written: how many cells, and whether they are headings.
        self._cells = 0
        self._heads = False

    def mark(self, mark: re.Match[str]) -> int:
        """Write what a mark means; returns where to go on."""
        place, name = mark.start(), (mark["name"] or "").casefold()
        if mark["space"]:
            if self._verbatim:
                self.copy(place, mark.end())
            elif not self.last.isspace():
                self.put(" ", place)
        elif mark["entity"]:
            self.put(html.unescape(mark["entity"]), place)
        elif mark["comment"]:
            return self._behind("-->", mark.end(), 3)
        elif name in _SILENT and not mark["close"] and not mark["given"].endswith("/"):
            return self._behind(f"</{name}", mark.end(), 0)
        elif name:
            self._tag(name, place, mark["given"], closes=bool(mark["close"]))
        return mark.end()

    def _behind(self, end: str, place: int, chars: int) -> int:
        """The offset after a hidden element; an unclosed one hides nothing and is remembered."""
        found = -1 if end in self._unclosed else self._folded.find(end, place)
        if found < 0:
            self._unclosed.add(end)
            return place
        return found + chars

    def _tag(self, name: str, place: int, given: str, *, closes: bool) -> None:
        if name in ("td", "th"):
            self._cell(place, heading=name == "th", closes=closes)
        elif name == "a":
            self._anchor(place, given, closes=closes)
        elif name in _LINES or name in _HEADINGS:
            self._line(name, place, closes=closes)

    def _cell(self, place: int, *, heading: bool, closes: bool) -> None:
        if not closes:
            self._cells += 1
            self._heads = self._heads or heading
            self.put("| " if self._cells == 1 else " | ", place)

    def _anchor(self, place: int, given: str, *, closes: bool) -> None:
        if closes and self._link:
            self.put(f" ({self._link})", place)
        link = None if closes else _HREF.search(given)
        self._link = link[1] if link else ""

    def _line(self, name: str, place: int, *, closes: bool) -> None:
        if name == "pre":
            self._verbatim = max(0, self._verbatim + (-1 if closes else 1))
        if name in ("tr", "table") and self._cells:
            rule = "\n" + "|---" * self._cells + "|" if self._heads and closes else ""
            self.put(f" |{rule}\n", place)
            self._cells, self._heads = 0, False
        elif self._cells:
            # A block inside a cell stays in its row.
            self.put(" ", place)
        elif self.last != "\n":
            self.put("\n", place)
        if not closes:
            opening = "- " if name == "li" else _HEADINGS.get(name, "")
            self.put("\n" + opening if name in _HEADINGS else opening, place)


def elements(frame: Frame) -> Frame:
    """XML with a line break between any two tags that touch."""
    written = Transcript(frame)
    place = 0
    for gap in _XML_BREAK.finditer(frame.text):
        if "\n" not in gap[1]:
            written.copy(place, gap.end()).put("\n", gap.end())
            place = gap.end()
    return written.copy(place, len(frame.text)).frame(len(frame.text), frame.where)
