"""Pages about the API: the reference, and what each problem means. No scripts, nothing from other origins."""

from typing import cast

from fastapi import APIRouter, FastAPI, Request, Response

from pagefile.errors import NotFoundError
from pagefile.service.html import fill, page, read
from pagefile.service.problems import kinds
from pagefile.service.reference import reference_page

routes = APIRouter(include_in_schema=False)


@routes.get("/docs")
async def docs(request: Request) -> Response:
    """The API, route by route."""
    return page(reference_page(cast("FastAPI", request.app).openapi()))


@routes.get("/problems/{code}")
async def explanation(code: str) -> Response:
    """What a problem means."""
    kind = kinds().get(code)
    if kind is None:
        raise NotFoundError("There is no problem of this name: /docs lists them all.")
    return page(fill("problem.html", "page", code=kind.code, status=kind.status, title=kind.title))


@routes.get("/style.css")
async def style() -> Response:
    """How the pages look."""
    return Response(read("style.css"), media_type="text/css; charset=utf-8")
