"""Tool results such as real tools return, made small, and the few steps that every test takes with them."""

import json
import re
from typing import Any

from pagefile import Conversation, Turn, Window

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

#: What the minutes say in their middle, and the question that asks for it.
QUESTION = "What is the launch code word?"
ANSWER = "heliotrope"


def minutes(sections: int = 1500) -> str:
    """A long text in English whose middle has the answer."""
    lines = [
        f"Section {n}. The quick decision on topic {n} was recorded by committee {n % 7}; budget {n * 13} EUR."
        for n in range(sections)
    ]
    lines[sections // 2] += f" The launch code word is {ANSWER}."
    return "\n".join(lines)


def contract(clauses: int = 150) -> str:
    """A contract in Chinese: the price is at its head, the place of arbitration at its end."""
    listed = "".join(
        f"第{n}条 乙方应于收到甲方书面通知后{n % 27 + 3}个工作日内完成第{n}项交付物的验收整改。"
        f"逾期每日按合同总价款的千分之{n % 5 + 1}支付违约金，累计不超过合同总价款的{n % 15 + 5}%。\n"
        for n in range(1, clauses)
    )
    head = (
        "技术服务合同\n合同编号：HT-2025-0318\n甲方：杭州云图科技有限公司\n合同总价款：人民币1,280,000元\n\n"
    )
    return f"{head}{listed}\n第一百五十条 本合同争议提交杭州仲裁委员会仲裁。\n"


def handbook(chapters: int = 60) -> str:
    """A handbook in Chinese; the limit of 55MB is in one chapter near its end."""
    said = "审批流支持串行、并行与会签三种模式。会签节点须全部同意方可通过；并行节点任一同意即通过。驳回时可退回发起人。"
    return "## 检索上下文\n\n" + "\n\n".join(
        f"### 文档块 {n}\n{said * 4}第 {n} 节补充：版本 V{n // 5 + 2}.{n % 5} 起支持移动端审批，附件上限 {20 + n}MB。"
        for n in range(chapters)
    )


def payment_log(lines: int = 260) -> str:
    """The log of a payment service, with one error in its middle."""
    written = [
        f"2025-03-12 0{n // 60}:{n % 60:02d}:07.{n + 100} INFO [exec-{n % 8}] OrderService - 处理订单 SO{n:06d} 完成"
        for n in range(lines)
    ]
    written[lines // 2] = (
        "2025-03-12 02:20:07.240 ERROR [exec-4] PayService - 支付回调验签失败：商户号 190001，证书已过期"
    )
    return "\n".join(written)


def transcript(lines: int = 160) -> str:
    """The transcript of a meeting in which one thing is decided."""
    said = (
        "I think the migration slips a week because the vendor's SSO is not ready.",
        "Let's keep the beta on May 14 but cap it at 200 accounts.",
        "Who owns the pricing page copy?",
        "Legal still wants the DPA signed before EU traffic.",
    )
    spoken = [
        f"[{n // 60:02d}:{n % 60:02d}] {('Maya', 'Tom')[n % 2]}: {said[n * 7 % 4]}" for n in range(lines)
    ]
    spoken[lines // 2] = "[01:20] Priya: Decision: we drop the Android tablet layout from Q2, it moves to Q3."
    return "Q2 roadmap sync, transcript\n" + "\n".join(spoken)


def output_of_tests() -> str:
    """What a run of 412 tests prints: two failures above a long log, the summary at the very end."""
    dots = [
        f"tests/test_mod_{n}.py {'.' * 7}{'F' if n in {11, 44} else '.'} [{n * 100 // 60:3d}%]"
        for n in range(60)
    ]
    log = [
        f"captured log line {n}: DEBUG urllib3 connectionpool: Starting new HTTPS connection ({n}): api.example.com:443"
        for n in range(120)
    ]
    return "\n".join(
        [
            "============================= test session starts ==============================",
            "collected 412 items",
            *dots,
            "=================================== FAILURES ===================================",
            "______________________________ test_refund_rounding ____________________________",
            "E       AssertionError: assert Decimal('10.00') == Decimal('10.01')",
            "tests/test_mod_11.py:57: AssertionError",
            *log,
            "=========================== short test summary info ============================",
            "FAILED tests/test_mod_11.py::test_refund_rounding - AssertionError: assert Decimal('10.00')",
            "FAILED tests/test_mod_44.py::test_tz_boundary - ValueError: invalid literal",
            "================== 2 failed, 410 passed in 38.21s ==================",
        ]
    )


#: A long text as real tools wrap it.
WRAPPINGS = {
    "MCP blocks": lambda text: [{"type": "text", "text": text}],
    "MCP blocks as text": lambda text: json.dumps([{"type": "text", "text": text}]),
    "a fetched page": lambda text: {"url": "https://example.org/a", "content": text},
    "a scraped page": lambda text: {
        "success": True,
        "data": {"markdown": text, "metadata": {"title": "Minutes"}},
    },
    "a shell": lambda text: {"stdout": text, "stderr": "", "exit_code": 0},
}


async def kept(
    chat: Conversation, question: str, result: Any, /, *, tool: str = "fetch", **given: Any
) -> str:
    """A whole turn in which a tool returns a long result; the uuid of the page it became."""
    turn = await chat.begin(question)
    turn = await chat.step(turn, tool=tool, input=given, result=result)
    await chat.complete(turn, "OK.")
    return page_of(turn)


def page_of(turn: Turn) -> str:
    """The uuid of the page that the last tool result of a turn became."""
    page = turn.steps[-1].page
    if not page:
        raise LookupError("The result was not archived: a test needs a longer one.")
    return page


def uuid_in(text: str) -> str:
    """The uuid that a placeholder names."""
    found = UUID.search(text)
    if not found:
        raise LookupError(f"No page is named in {text[:200]!r}.")
    return found[0]


async def load(chat: Conversation, uuid: str, **arguments: Any) -> str:
    """What a model gets that calls `load_tool_history`."""
    return await chat.call_tool("load_tool_history", {"uuid": uuid, **arguments})


async def load_in(chat: Conversation, turn: Turn, uuid: str) -> Turn:
    """A turn in which the model loads a page."""
    return await chat.step(
        turn, tool="load_tool_history", input={"uuid": uuid}, result=await load(chat, uuid)
    )


def tool_texts(window: Window) -> list[str]:
    """What is in a window for each tool result."""
    return [str(message["content"]) for message in window.messages if message["role"] == "tool"]


def all_text(window: Window) -> str:
    """Everything a model can read in a window."""
    return "\n".join(str(message["content"]) for message in window.messages)
