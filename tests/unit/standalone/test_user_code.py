"""Functions that users give (retrievers, embedders, models, clients of vector stores): none holds up the event loop."""

import threading

import pytest

from pagefile.standalone.user_code import called

pytestmark = pytest.mark.anyio


def where(name, *, suffix=""):
    return f"{name}{suffix}", threading.get_ident()


async def async_where(name):
    return where(name)


async def test_a_blocking_function_runs_in_a_thread():
    """Whatever it does there, the event loop goes on."""
    name, thread = await called(where, "a", suffix="b")
    assert "ab" == name
    assert threading.get_ident() != thread


async def test_an_async_function_runs_where_it_is_asked():
    """It may use what belongs to the event loop."""
    assert ("a", threading.get_ident()) == await called(async_where, "a")


async def test_what_a_blocking_function_returns_may_have_to_be_awaited():
    """A lambda around an async function is such a function."""
    assert ("a", threading.get_ident()) == await called(lambda: async_where("a"))
