"""Export, import, and waiting for background work."""

import os
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from pagefile import verbs
from pagefile.engine import Memory
from pagefile.engine.export import export_lines
from pagefile.engine.export_lines import LINE, HeaderLine, described, first_fault
from pagefile.engine.importer import import_from, lines_of
from pagefile.engine.ownership import looked_up
from pagefile.errors import StoreFullError, TransferError
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.service.auth import open_memory
from pagefile.service.routes import at_verb, router
from pagefile.text.json_size import MAX_VALUES, has_many_values
from pagefile.tiers.base import off_loop
from pagefile.wire.requests import ExportParams, ImportParams, Settle
from pagefile.wire.responses import LINES, ImportOut, SettledOut

routes = router("Export and import")

#: How much of an export to buffer before sending.
_CHUNK_CHARS = 64_000
#: From this size on, parsing a line on the event loop would block it noticeably.
_THREAD_FROM_BYTES = 100_000

#: A record that a service wrote itself may be larger than a request.
_MAX_VALUES = 10 * MAX_VALUES

_PREFIX = "pagefile-import-"
_NAMED = re.compile(rf"{_PREFIX}(\d+)-.*")

_HEADER = '{"type":"pagefile-export","version":1}\n'
_CONTENT = {LINES: {"schema": {"type": "string"}, "example": _HEADER}}
_EXPORTED = {"description": "JSON lines, one record per line; the first is a header", "content": _CONTENT}
_UPLOADED = {
    "required": True,
    "description": "An export, as `GET /v1/export` or `pagefile export` makes it.",
    "content": _CONTENT,
}


@routes.get("/v1/export", name="export_memory", response_class=StreamingResponse, responses={200: _EXPORTED})
async def export(request: Request, params: Annotated[ExportParams, Query()]) -> StreamingResponse:
    """A conversation, a user or a tenant as JSON lines; facts and items are included unless a conversation is named.

    It is streamed. If the connection ends before the last chunk, the export is incomplete.
    """
    memory = open_memory(request.app)
    memory.engine.check_open()
    named = Scope(params.tenant or DEFAULT_TENANT, params.user_id, params.conversation_id)
    scope = await looked_up(memory, named)
    headers = {"Content-Disposition": 'attachment; filename="pagefile-export.jsonl"'}
    return StreamingResponse(_chunks(memory, scope), media_type=LINES, headers=headers)


@routes.post("/v1/import", name="import_memory", openapi_extra={"requestBody": _UPLOADED})
async def import_(request: Request, params: Annotated[ImportParams, Query()]) -> ImportOut:
    """Read an export; what already exists is left as it is.

    Nothing is written unless every line is valid. It may be larger than other bodies (`service.max_import_bytes`), and can
    be sent again safely.
    """
    engine = open_memory(request.app).engine
    engine.check_open()
    with upload_folder() as folder:
        path = Path(folder) / "upload.jsonl"
        try:
            async with await anyio.open_file(path, "wb") as file:
                async for line in _checked(request.stream(), params.user_id):
                    await file.write(line)
        except OSError as error:
            raise StoreFullError(f"The upload cannot be stored: {error}.") from error
        tenant = params.tenant or DEFAULT_TENANT
        counts = await import_from(engine, path, tenant, called="the upload")
    return ImportOut(counts=counts)


@at_verb(routes, verbs.SETTLE)
async def settle(request: Request, body: Settle) -> SettledOut:
    with anyio.move_on_after(body.timeout_s) as waiting:
        await open_memory(request.app).settle()
    return SettledOut(settled=not waiting.cancelled_caught)


async def _chunks(memory: Memory, scope: Scope) -> AsyncGenerator[str]:
    gathered: list[str] = []
    size = 0
    async for _, line in export_lines(memory.engine, scope):
        gathered.append(line)
        size += len(line)
        if size >= _CHUNK_CHARS:
            yield "".join(gathered)
            gathered, size = [], 0
    yield "".join(gathered)


async def _checked(chunks: AsyncIterator[bytes], user_id: str | None) -> AsyncGenerator[bytes]:
    """The lines of an upload, each validated and, if a user is named, checked to belong to that user."""
    number = 0
    async for line in lines_of(chunks):
        number += 1
        await off_loop(partial(_check, line, number, user_id), len(line), _THREAD_FROM_BYTES)
        yield line
    if number == 0:
        raise TransferError("The upload is empty: send an export, as GET /v1/export makes it.")


def _check(line: bytes, number: int, user_id: str | None) -> None:
    if has_many_values(line, _MAX_VALUES):
        raise TransferError(
            f"Line {number} has more than {_MAX_VALUES:,} JSON values: import the file with `pagefile import` instead."
        )
    try:
        record = LINE.validate_json(line)
    except ValidationError as error:
        raise TransferError(
            f"Line {number} is not a record of an export: {described(first_fault(error))}."
        ) from None
    if (number == 1) != isinstance(record, HeaderLine):
        raise TransferError(
            f"Line {number}: an export begins with a line that says what it is, and has no other such line."
        )
    if user_id is not None and not isinstance(record, HeaderLine) and record.user_id != user_id:
        raise TransferError(
            f"Line {number} is not of the user {user_id!r}: only what is theirs can be imported here."
        )


# -- temporary folders ---------------------------------------------------------------------------------------------------


def upload_folder() -> tempfile.TemporaryDirectory[str]:
    """A directory for one upload; its name holds the process id."""
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


def remove_left_uploads() -> None:
    """Remove what dead processes left behind: it holds user content, and no erasure would find it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        named = _NAMED.fullmatch(folder.name)
        if named is None or not _is_running(int(named[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # The process belongs to another user, and so does the directory.
        return True
    return True
