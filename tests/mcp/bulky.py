"""A server like those that people wrap: bulky results, and everything that a server may ask of its client."""

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server

LONG = "".join(f"Row {number}: the value of item {number * 7} is {number * 13}.\n" for number in range(2_000))
#: What was cancelled.
CANCELLED: list[str] = []


def _text(text):
    return types.TextContent(type="text", text=text)


async def _tools(_ctx, _params):
    schema = {"type": "object", "properties": {"about": {"type": "string"}}}
    promised = {"type": "object", "properties": {"rows": {"type": "string"}}, "required": ["rows"]}
    return types.ListToolsResult(
        tools=[
            types.Tool(name="rows", input_schema=schema, output_schema=promised),
            types.Tool(name="ask", input_schema=schema),
            types.Tool(name="slow", input_schema=schema),
        ]
    )


async def _call(ctx, params):
    session, about = ctx.session, (params.arguments or {}).get("about", "")
    if params.name == "rows":
        structured = {"rows": LONG if about == "long" else "few"}
        image = types.ImageContent(type="image", data="aGk=", mime_type="image/png")
        return types.CallToolResult(
            content=[_text(structured["rows"]), image, _text("the end")], structured_content=structured
        )
    if params.name == "slow":
        try:
            await ctx.session.report_progress(1, 2, "half")
            await anyio.sleep(30 if about == "for ever" else 0)
        except anyio.get_cancelled_exc_class():
            CANCELLED.append(about)
            raise
        return types.CallToolResult(content=[_text("done")])
    related = ctx.request_id
    if about == "roots":
        said = str((await session.list_roots()).roots[0].uri)
    elif about == "sampling":
        asked = [types.SamplingMessage(role="user", content=_text("Hello"))]
        said = (
            await session.create_message(messages=asked, max_tokens=5, related_request_id=related)
        ).content.text
    else:
        wanted = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await session.elicit_form("Your name?", wanted, related_request_id=related)
        said = answer.content["name"]
    return types.CallToolResult(content=[_text(said)])


async def _with_a_loader(ctx, params):
    listed = await _tools(ctx, params)
    schema = {"type": "object", "properties": {"uuid": {"type": "string"}}}
    return types.ListToolsResult(
        tools=[*listed.tools, types.Tool(name="load_tool_history", input_schema=schema)]
    )


def server(*, loads=False) -> Server:
    """`loads`: with a tool of the same name as ours."""
    return Server(
        "bulky", version="1.0", on_list_tools=_with_a_loader if loads else _tools, on_call_tool=_call
    )
