"""The complete example of the design document on short-term memory, offline, with a scripted model in place of a real one.

A patient talks to a medical assistant. When the history fills three quarters of the window, the agent summarises it in the
background while the conversation goes on; from then on the prompt has the summary and the latest turns.

    python examples/zh/short_term_memory.py [URL] [SESSIONS]

URL may be PostgreSQL's, SESSIONS that of a Redis: the conversation is the same.
"""

import re
import sys
import tempfile

import anyio
from anyio.abc import TaskGroup

from pagefile import Memory, PagefileError
from pagefile.standalone import (
    AgentApp,
    AgentRequest,
    MemoryContext,
    MemoryQueryRequest,
    MemoryWriteRequest,
    NewAgentApp,
    format_prompt,
)

#: Small, so that a short conversation fills it.
MODEL_CONTEXT_WINDOW = 700

QUESTIONS = (
    "我最近感觉头晕，应该怎么办？",
    "我还有高血压，需要注意什么？",
    *(
        f"今天是第{day}天，血压{150 - day}/{95 - day}，头晕比昨天轻一些，药还要继续吃吗？"
        for day in range(1, 25)
    ),
    "我最早说的是什么症状？",
)


async def handle_user_message(
    app: AgentApp, background: TaskGroup, conversation_id: str, user_message: str
) -> None:
    # 1. 查询记忆上下文
    ctx = await app.QueryMemoryContext(
        MemoryQueryRequest(
            ConversationID=conversation_id,
            Query=user_message,
            ModelContextWindow=MODEL_CONTEXT_WINDOW,
        )
    )
    # 2. 构建prompt
    prompt = format_prompt(ctx.History, user_message)
    # 3. 调用LLM
    llm_response = call_llm(prompt)
    # 4. 检查是否需要生成摘要: in the background, so that no call waits for it
    if ctx.ShouldCheckpointSummary:
        background.start_soon(summarise, app, ctx)
    # 5. 写入对话记录
    await app.WriteTurn(MemoryWriteRequest(ConversationID=conversation_id, AgentResponse=llm_response))
    # 6. 返回AI回复
    print(f"用户: {user_message}")
    print(f"AI回复: {llm_response}")
    print(f"   {ctx.Mode}, {ctx.EstimatedTokens} tokens, {ctx.TokenRatio:.0%}")


async def summarise(app: AgentApp, ctx: MemoryContext) -> None:
    summary = generate_summary(ctx.FullHistory)
    try:
        # ReadToken: however late the summary comes, it covers no turn that was not in FullHistory.
        await app.CheckpointShortMemory(ctx.ConversationID, summary, 8, ctx.ReadToken)
    except PagefileError as error:
        print(f"CheckpointShortMemory error: {error}")
    else:
        print(f"   摘要: {summary}")


def call_llm(prompt: str) -> str:
    """Stands for a language model: it knows what the prompt says, and nothing else."""
    history, _, question = prompt.rpartition("\n\n用户问题: ")
    if "最早" in question:
        return (
            "您最早说的是头晕，并且有高血压。"
            if "头晕" in history and "高血压" in history
            else "我不记得了。"
        )
    if "血压1" in question:
        return f"血压{re.findall(r'[0-9]+/[0-9]+', question)[0]}，继续按时服药，低盐饮食，每天早晚各量一次。"
    if "高血压" in question:
        return "低盐饮食，按时服药，避免突然起身。"
    return "先坐下休息，量一下血压，并告诉我结果。"


def generate_summary(full_history: str) -> str:
    """Stands for a model that summarises: what was complained about, and the range of the readings."""
    readings = re.findall(r"[0-9]{2,3}/[0-9]{2,3}", full_history)
    errors = [word for word in ("头晕", "高血压") if word in full_history]
    return f"用户主诉{'、'.join(errors)}；血压从{readings[0]}降到{readings[-1]}，继续服药。"


async def main(url: str, sessions: str | None = None) -> None:
    async with Memory.open(url, sessions=sessions) as memory:
        # 初始化
        app = NewAgentApp(memory)
        # 1. 用户发起对话
        conversation_id, user_id = "conv-123", "user-456"
        # 2. 创建短期记忆会话
        await app.CreateShortMemory(AgentRequest(ConversationId=conversation_id, UserId=user_id))
        for question in QUESTIONS:
            # The user has the answer while the summary is still being made.
            async with anyio.create_task_group() as background:
                await handle_user_message(app, background, conversation_id, question)
        session = await app.GetShortMemory(conversation_id)
        print(f"当前模式: {session.MessageContext.Mode}")
        print(f"轮次计数: {session.FlowContext.TurnCount}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, *(sys.argv[1:] or [f"sqlite:///{folder}/agent.db"]))
