/** Turns as an agent's loop makes them: begun with the user's message, extended by each step, completed by the answer. */
import type { LanguageModelV4Content, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { PagefileError, type Pagefile } from "./client.ts";
import { type ChatMessage, generatedMessages, toMessages, toPrompt, type Version } from "./prompt.ts";

/** Whose memory it is. */
export interface Place {
  conversationId: string;
  userId?: string | undefined;
  tenant?: string | undefined;
}

export interface WindowOptions {
  /** The tokens that a window may have; by default the service's setting. */
  windowTokens?: number | undefined;
  /** The model that gets the window: its context is the budget then. */
  windowFor?: string | undefined;
  /** The language of what is written around the conversation. */
  language?: "auto" | "zh" | "en" | undefined;
  timezone?: string | undefined;
}

export interface Preparation extends WindowOptions {
  prompt: LanguageModelV4Prompt;
  version: Version;
  /** Schemas of the tools, which take room in the request. */
  tools?: readonly object[] | undefined;
  answerTokens?: number | undefined;
  /** The id of the turn, to take it up again in another process. */
  turnId?: string | undefined;
  signal?: AbortSignal | undefined;
}

interface OpenTurn {
  id: string;
  /** The user's message, by which a repeated request is known. */
  user: string;
  count: number;
  calls: Set<string>;
  results: Set<string>;
}

/** The tools that read archived results; they are answered by the service. */
export const MEMORY_TOOLS: ReadonlySet<string> = new Set(["load_tool_history", "search_tool_history"]);
/** How many conversations are remembered: those known to the service, and those with an open turn. */
const MAX_KNOWN = 10_000;

export class Turns {
  readonly #client: Pagefile;
  readonly #open = new Map<string, OpenTurn>();
  readonly #known = new Set<string>();

  constructor(client: Pagefile) {
    this.#client = client;
  }

  /** Records what is new in a prompt, and gives the window for it; undefined if it has no message of a user. */
  async prepared(place: Place, asked: Preparation): Promise<LanguageModelV4Prompt | undefined> {
    const { prompt } = asked;
    const last = prompt.findLastIndex((message) => message.role === "user");
    if (last < 0) {
      return undefined;
    }
    const start = prompt.findLastIndex((message, index) => index < last && message.role !== "user") + 1;
    await this.#adopt(place, prompt.slice(0, start), asked.signal);
    const users = prompt.slice(start, last + 1).flatMap(toMessages);
    const turn = await this.#turn(place, users, prompt.length > last + 1, asked);
    await this.#extend(place, turn, this.#news(turn, prompt.slice(last + 1).flatMap(toMessages)), asked.signal);
    return this.window(place, asked);
  }

  /** The window for the turn that is open, as a prompt. */
  async window(place: Place, asked: Preparation): Promise<LanguageModelV4Prompt> {
    const turn = this.#opened(place);
    const instructions = asked.prompt.flatMap((message) => (message.role === "system" ? [message.content] : []));
    const window = await this.#client.context(
      {
        ...scope(place),
        turn_id: turn.id,
        ...(instructions.length > 0 && { instructions: instructions.join("\n\n") }),
        ...(asked.windowTokens !== undefined && { window_tokens: asked.windowTokens }),
        ...(asked.windowFor !== undefined && { window_for: asked.windowFor }),
        ...(asked.language !== undefined && { language: asked.language }),
        ...(asked.timezone !== undefined && { timezone: asked.timezone }),
        ...(asked.answerTokens !== undefined && { answer_tokens: asked.answerTokens }),
        ...(asked.tools !== undefined && { tools: asked.tools as Record<string, unknown>[] }),
      },
      { signal: asked.signal },
    );
    return toPrompt(window.messages, asked.prompt, asked.version);
  }

  /** Records what the model generated. Calls of the tools of the memory are answered; whether the model has to go on with them alone. */
  async generated(place: Place, content: readonly LanguageModelV4Content[], signal?: AbortSignal): Promise<boolean> {
    const turn = this.#opened(place);
    const calls = content.filter((part) => part.type === "tool-call");
    const ours = calls.filter((part) => MEMORY_TOOLS.has(part.toolName));
    const others = calls.filter((part) => !MEMORY_TOOLS.has(part.toolName) && part.providerExecuted !== true);
    await this.#extend(place, turn, generatedMessages(content), signal);
    for (const one of ours) {
      const { text } = await this.#client.callTool(
        { ...scope(place), name: one.toolName, arguments: argumentsOf(one.input), turn_id: turn.id },
        { signal },
      );
      await this.#extend(place, turn, [{ role: "tool", tool_call_id: one.toolCallId, content: text }], signal);
    }
    if (others.length > 0) {
      return false;
    }
    if (ours.length > 0) {
      return true;
    }
    await this.complete(place);
    return false;
  }

  /** The open turn is over: with this answer, or with the one among its messages. */
  async complete(place: Place, answer?: string): Promise<void> {
    const turn = this.#open.get(key(place));
    if (turn === undefined) {
      return;
    }
    if (answer !== undefined && answer !== "") {
      await this.#extend(place, turn, [{ role: "assistant", content: answer }]);
    }
    this.#open.delete(key(place));
    await this.#client.complete({ ...scope(place), turn_id: turn.id });
  }

  /** The open turn gets no answer. What the user said stays. */
  async abort(place: Place): Promise<void> {
    const turn = this.#open.get(key(place));
    if (turn !== undefined) {
      this.#open.delete(key(place));
      await this.#client.abort({ ...scope(place), turn_id: turn.id });
    }
  }

  /** The id of the open turn, if there is one. */
  openId(place: Place): string | undefined {
    return this.#open.get(key(place))?.id;
  }

  #opened(place: Place): OpenTurn {
    const turn = this.#open.get(key(place));
    if (turn === undefined) {
      throw new PagefileError("No turn of this conversation is open.", "no-open-turn");
    }
    return turn;
  }

  /** The turn of a prompt: the open one, if this prompt continues or repeats it. */
  async #turn(place: Place, users: ChatMessage[], continues: boolean, asked: Preparation): Promise<OpenTurn> {
    const user = JSON.stringify(users);
    const open = this.#open.get(key(place));
    if (open !== undefined) {
      const named = asked.turnId === undefined || asked.turnId === open.id;
      if (named && open.user === user && (continues || open.calls.size === 0)) {
        return open;
      }
      await this.abort(place);
    }
    const begun = await this.#client.begin(
      { ...scope(place), id: asked.turnId ?? crypto.randomUUID(), messages: users },
      { signal: asked.signal },
    );
    const turn: OpenTurn = { id: begun.id, user, count: users.length, calls: new Set(), results: new Set() };
    if (begun.steps.length > 0) {
      // Begun in another process: what it has is not recorded again. As they came, or open calls would be left out.
      const { messages } = await this.#client.getMessages({ ...scope(place), turn_id: begun.id });
      note(turn, messages as ChatMessage[]);
      turn.count = messages.length;
    }
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MAX_KNOWN && oldest !== undefined) {
      this.#open.delete(oldest);
    }
    this.#open.set(key(place), turn);
    return turn;
  }

  /** The messages behind the user's that the turn does not have yet. */
  #news(turn: OpenTurn, messages: ChatMessage[]): ChatMessage[] {
    return messages.filter((message) => {
      if (message.role === "tool") {
        return !turn.results.has(message.tool_call_id);
      }
      const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
      return calls.length > 0 && calls.every((one) => !turn.calls.has(one.id));
    });
  }

  async #extend(place: Place, turn: OpenTurn, messages: ChatMessage[], signal?: AbortSignal): Promise<void> {
    if (messages.length > 0) {
      await this.#client.extend({ ...scope(place), turn_id: turn.id, messages, after: turn.count }, { signal });
      note(turn, messages);
      turn.count += messages.length;
    }
  }

  /** Records the turns before the user's message, where the service does not know the conversation yet. */
  async #adopt(place: Place, before: LanguageModelV4Prompt, signal?: AbortSignal): Promise<void> {
    const earlier = before.filter((message) => message.role !== "system");
    if (this.#known.has(key(place)) || earlier.length === 0) {
      return;
    }
    if (!(await this.#isKnown(place))) {
      for (const messages of turnsOf(earlier)) {
        await this.#client.record({ ...scope(place), messages }, { signal });
      }
    }
    if (this.#known.size >= MAX_KNOWN) {
      this.#known.clear();
    }
    this.#known.add(key(place));
  }

  async #isKnown(place: Place): Promise<boolean> {
    try {
      return (await this.#client.getConversation(scope(place))).last_seq > 0;
    } catch (error) {
      if (error instanceof PagefileError && error.status === 404) {
        return false;
      }
      throw error;
    }
  }
}

export function scope(place: Place) {
  return {
    conversation_id: place.conversationId,
    ...(place.userId !== undefined && { user_id: place.userId }),
    ...(place.tenant !== undefined && { tenant: place.tenant }),
  };
}

function key(place: Place): string {
  return JSON.stringify([place.tenant, place.userId, place.conversationId]);
}

function note(turn: OpenTurn, messages: ChatMessage[]): void {
  for (const message of messages) {
    if (message.role === "tool") {
      turn.results.add(message.tool_call_id);
    } else if (message.role === "assistant") {
      for (const one of message.tool_calls ?? []) {
        turn.calls.add(one.id);
      }
    }
  }
}

/** Messages in turns: each begins with what the user said. */
function turnsOf(prompt: LanguageModelV4Prompt): ChatMessage[][] {
  const turns: ChatMessage[][] = [];
  let before: string | undefined;
  for (const message of prompt) {
    if (turns.length === 0 || (message.role === "user" && before !== "user")) {
      turns.push([]);
    }
    turns.at(-1)?.push(...toMessages(message));
    before = message.role;
  }
  return turns.filter((messages) => messages.length > 0);
}

function argumentsOf(input: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(input);
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
