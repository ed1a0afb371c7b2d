"""Reads what a tool returned as pieces: rows, lines, sentences, each with what encloses it and with its place in the page.

Text inside something else (a string of JSON, the blocks of HTML) is read as if it were alone. No caller that asks for
pieces needs to know what kind of result it was.
"""

from pagefile.text.reading.frames import Frame, Piece
from pagefile.text.reading.reader import pieces

__all__ = ["Frame", "Piece", "pieces"]
