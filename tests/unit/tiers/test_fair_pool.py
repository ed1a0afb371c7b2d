"""Threads for large work, shared fairly among tenants."""

import threading

import anyio
import pytest

from pagefile.tiers.fair_pool import FairPool, working_for

pytestmark = pytest.mark.anyio


async def started(pool, tenant, work, group):
    async def run():
        working_for.set(tenant)
        await pool.run(work)

    group.start_soon(run)
    await anyio.wait_all_tasks_blocked()


async def test_tenants_take_turns():
    """One that has much to do is not served before another who came later."""
    pool, order, held = FairPool(1), [], threading.Event()
    async with anyio.create_task_group() as group:
        await started(pool, "busy", held.wait, group)
        for number in range(3):
            await started(pool, "busy", lambda number=number: order.append(f"busy {number}"), group)
        await started(pool, "calm", lambda: order.append("calm"), group)
        held.set()
    assert ["busy 0", "calm", "busy 1", "busy 2"] == order


async def test_so_many_at_a_time():
    pool, running, most, lock = FairPool(2), 0, 0, threading.Lock()

    def work():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(pool.run, work)
    assert 2 == most


async def test_who_gives_up_waiting_leaves_no_gap():
    pool, held, done = FairPool(1), threading.Event(), []
    async with anyio.create_task_group() as group:
        await started(pool, "a", held.wait, group)
        with anyio.move_on_after(0.01):
            await pool.run(lambda: done.append("never"))
        await started(pool, "b", lambda: done.append("b"), group)
        held.set()
    assert ["b"] == done
    await pool.run(lambda: done.append("after"))
    assert ["b", "after"] == done


async def test_an_error_gives_the_place_back():
    pool = FairPool(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 / 0)
