"""Every block of a window has a colour in the inspector's bars and in their legend."""

from importlib.resources import files

import pytest

from pagefile.window.candidates import PRIORITY


@pytest.mark.parametrize("block", PRIORITY)
def test_a_block_has_its_colour(block):
    css = files("pagefile.inspector").joinpath("assets/inspector.css").read_text("utf-8")
    assert f".b-{block} {{" in css.replace(f".b-{block},", f".b-{block} {{")
    assert f".key.b-{block}" in css
