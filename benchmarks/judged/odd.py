"""Results that are no text at all, say that there is nothing, or say what went wrong."""

import base64
from typing import Any

from benchmarks.judged.case import Case, dice, js


def pdf_base64() -> Case:
    """A file as base64 in JSON."""
    pick = dice("pdf base64")
    blob = base64.b64encode(b"%PDF-1.7\n" + pick.randbytes(24_000)).decode()
    body = {"name": "invoice-2026-1107.pdf", "mimeType": "application/pdf", "size": 24_009, "content": blob}
    return Case(
        "odd/base64-file", "en", "download_file", {"id": "f-99"},
        js(body),
        (("invoice-2026-1107.pdf", "PDF"), ("base64", "binary", "24,009", "24009", "bytes", "二进制")),
        (("What is the MIME type of the downloaded invoice-2026-1107?", "application/pdf"),),
        wrong=(blob[:40],),
    )  # fmt: skip


def bare_base64_zh() -> Case:
    """Nothing but base64."""
    blob = base64.b64encode(b"\x89PNG\r\n\x1a\n" + dice("png").randbytes(17_000)).decode()
    return Case(
        "odd/base64-bare-zh", "zh", "screenshot", {"页面": "订单中心"},
        blob,
        (("base64", "PNG", "二进制", "图片", "图像", "binary", "image"),),
        (),
        wrong=(blob[:40],),
    )  # fmt: skip


def hexdump() -> Case:
    """A dump with the readable column."""
    pick = dice("hexdump")
    lines: list[str] = []
    for n in range(300):
        row = bytearray(pick.randbytes(16))
        if n == 0:
            row[:16] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"
        if n == 188:
            row[:16] = b"BUILD=hx-7741-rc"
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        lines.append(f"{16 * n:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{shown}|")
    return Case(
        "odd/hexdump", "en", "bash", {"command": "hexdump -C -n 4800 firmware.bin"},
        "\n".join(lines),
        (("ELF", "hex", "binary"), ("4,800", "4800", "300", "hex", "dump")),
        (("Which BUILD string is in the hexdump of firmware.bin?", "BUILD=hx-7741-rc"),),
    )  # fmt: skip


def error_json_zh() -> Case:
    """A refusal, short."""
    body: dict[str, Any] = {
        "error": {
            "code": 403,
            "status": "PERMISSION_DENIED",
            "message": "应用 app_7731 未获得“读取通讯录”权限，请管理员在开放平台授权",
            "details": [],
        },
        "request_id": "9f02",
    }
    return Case(
        "odd/error-json-zh", "zh", "list_contacts", {"dept": 12},
        js(body),
        (("PERMISSION_DENIED", "403", "未获得", "权限"),),
        (("Which application lacks the right to read contacts?", "app_7731"),),
    )  # fmt: skip


def nothing_found_zh() -> Case:
    """A search without hits, short."""
    return Case(
        "odd/empty-zh", "zh", "search_orders", {"phone": "138****2201"},
        js({"code": 0, "msg": "success", "data": {"total": 0, "list": [], "pageNo": 1, "pageSize": 50}}),
        (("0", "空", "empty", "no "), ("total", "list", "订单", "order", "results", "结果", "条")),
        (),
    )  # fmt: skip


def not_found_html() -> Case:
    """An error page in HTML."""
    text = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>404 Not Found - Ledgerly Docs</title>
<style>body{font-family:system-ui;margin:4rem auto;max-width:40rem}h1{font-size:3rem}a{color:#06c}</style>
<script>!function(){var e=document.createElement("script");e.src="/t.js";document.head.appendChild(e)}();</script>
</head>
<body>
<h1>404</h1>
<p>The page <code>/v2/settlements/batch</code> does not exist. It was removed in version 3; see <a href="/v3/settlements">settlements</a>.</p>
<p>Request 8a1c-44, cache MISS</p>
</body>
</html>
"""
    return Case(
        "odd/not-found-html", "en", "fetch", {"url": "https://docs.ledgerly.example/v2/settlements/batch"},
        text,
        (("404", "not found", "does not exist"),),
        (("Since which version is the docs page on batch settlements gone?", "removed in version 3"),),
        wrong=("createElement",),
    )  # fmt: skip


def embeddings() -> Case:
    """Vectors, as an endpoint returns them."""
    pick = dice("embeddings")
    rows = [
        {
            "object": "embedding",
            "index": n,
            "embedding": [round(pick.uniform(-0.2, 0.2), 6) for _ in range(384)],
        }
        for n in range(8)
    ]
    return Case(
        "odd/embeddings", "en", "create_embeddings", {"model": "text-embed-3", "input": ["…"]},
        js({"object": "list", "data": rows, "model": "text-embed-3", "usage": {"prompt_tokens": 917, "total_tokens": 917, "tier": "flex-night"}}),
        (("embedding", "text-embed-3"), ("8",)),
        (("On which tier were the text-embed-3 embeddings billed?", "flex-night"),),
    )  # fmt: skip


CASES = (pdf_base64, bare_base64_zh, hexdump, error_json_zh, nothing_found_zh, not_found_html, embeddings)
