/** Turns of Pagefile as messages of Mastra, and back. */
import type { MastraDBMessage } from "@mastra/core/agent";
import type { components } from "./schema.ts";

type Turn = components["schemas"]["TurnOut"];

/** A turn as two messages of Mastra; the user's has the turn's id. */
export function messagesOf(turn: Turn): MastraDBMessage[] {
  const common = { createdAt: new Date(turn.at), threadId: turn.conversation_id, ...(turn.user_id !== null && { resourceId: turn.user_id }) };
  const calls = turn.steps.map((step) => ({
    type: "tool-invocation" as const,
    toolInvocation: { state: "result" as const, toolCallId: step.call_id, toolName: step.tool, args: step.input, result: step.result },
  }));
  const said = (text: string) => [{ type: "text" as const, text }];
  const messages: MastraDBMessage[] = [];
  if (turn.user !== null) {
    messages.push({ ...common, id: turn.id, role: "user", content: { format: 2, parts: said(turn.user), content: turn.user } });
  }
  if (turn.assistant !== null || calls.length > 0) {
    const parts = [...calls, ...(turn.assistant === null ? [] : said(turn.assistant))] as MastraDBMessage["content"]["parts"];
    const content = { format: 2 as const, parts, ...(turn.assistant !== null && { content: turn.assistant }) };
    messages.push({ ...common, id: `${turn.id}:answer`, role: "assistant", content });
  }
  return messages;
}

/** Messages of a thread as turns to record: each user's message with what follows it. */
export function turnsIn(messages: MastraDBMessage[]) {
  const turns: { id: string; user?: string; assistant?: string; steps: { tool: string; input: unknown; result: unknown; call_id: string }[] }[] = [];
  for (const message of messages) {
    const text = message.content.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    if (message.role === "user") {
      turns.push({ id: message.id, user: text, steps: [] });
    } else if (message.role === "assistant") {
      const turn = turns.at(-1) ?? { id: message.id, steps: [] };
      if (turns.length === 0) {
        turns.push(turn);
      }
      for (const part of message.content.parts) {
        if (part.type === "tool-invocation" && part.toolInvocation.state === "result") {
          const { toolName, toolCallId, args, result } = part.toolInvocation;
          turn.steps.push({ tool: toolName, input: args, result, call_id: toolCallId });
        }
      }
      if (text !== "") {
        turn.assistant = turn.assistant === undefined ? text : `${turn.assistant}\n${text}`;
      }
    }
  }
  return turns;
}
