/**
 * Memory for agents of Mastra: `new Agent({ …, memory: new PagefileMemory({ client }) })`.
 *
 * A thread is a conversation, a resource is its user. A processor records each turn and replaces the prompt by the window that
 * fits, on its way to the model: Mastra's own list of messages stays as it is.
 */
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { MastraDBMessage } from "@mastra/core/agent";
import { MastraMemory, type StorageThreadType } from "@mastra/core/memory";
import type { InputProcessor, OutputProcessor, ProcessLLMRequestArgs, ProcessOutputResultArgs } from "@mastra/core/processors";
import type { RequestContext } from "@mastra/core/request-context";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { type Pagefile, PagefileError } from "./client.ts";
import type { components } from "./schema.ts";
import { messagesOf, turnsIn } from "./mastra-messages.ts";
import { type Place, scope, Turns, type WindowOptions } from "./turns.ts";

type Turn = components["schemas"]["TurnOut"];
type Conversation = components["schemas"]["ConversationOut"];
type MemoryOf<Method extends keyof MastraMemory> = MastraMemory[Method] extends (args: infer Args) => unknown ? Args : never;
/** What a thread has that a conversation has not; it is kept in the session value. */
type Notes = Pick<StorageThreadType, "title" | "metadata">;

export interface PagefileMemoryOptions extends WindowOptions {
  client: Pagefile;
  tenant?: string;
  /** What to do when the memory fails: the agent goes on without it. Warns on the console by default; throw to stop it. */
  onError?: (error: unknown) => void;
}

const MAX_PAGE = 1000;
/** How many threads' resources are remembered. */
const MAX_OWNERS = 10_000;

export class PagefileMemory extends MastraMemory {
  readonly #options: PagefileMemoryOptions;
  readonly #client: Pagefile;
  readonly #turns: Turns;
  /** The resource of each thread: Mastra asks for threads by their id alone. */
  readonly #owners = new Map<string, string>();

  constructor(options: PagefileMemoryOptions) {
    super({ id: "pagefile", name: "Pagefile", options: { lastMessages: false, semanticRecall: false } });
    this.#options = options;
    this.#client = options.client;
    this.#turns = new Turns(options.client);
  }

  // -- in the agent's loop ----------------------------------------------------------------------------------------------

  override async getInputProcessors(): Promise<InputProcessor[]> {
    return [{ id: "pagefile-window", processLLMRequest: (asked) => this.#compiled(asked) }];
  }

  override async getOutputProcessors(): Promise<OutputProcessor[]> {
    return [{ id: "pagefile-record", processOutputResult: (done) => this.#completed(done) }];
  }

  override listTools(): ReturnType<MastraMemory["listTools"]> {
    const answer = (name: string) => async (input: unknown, context: object) => {
      const { threadId, resourceId } = (context as { agent?: { threadId?: string; resourceId?: string } }).agent ?? {};
      if (threadId === undefined) {
        throw new PagefileError("There is no thread whose results could be loaded.", "no-thread");
      }
      const place = this.#place(threadId, resourceId);
      const turn = this.#turns.openId(place);
      const called = { ...scope(place), name, arguments: input as Record<string, unknown>, ...(turn !== undefined && { turn_id: turn }) };
      return (await this.#client.callTool(called)).text;
    };
    return {
      load_tool_history: createTool({
        id: "load_tool_history",
        description: "Bring back the full result of an earlier tool call, or the passages of it that answer a query.",
        inputSchema: z.object({
          uuid: z.string().describe("The UUID of the tool result, taken from its placeholder"),
          query: z.string().optional().describe("Return only the passages that answer this question"),
          offset: z.number().int().min(0).optional().describe("The character to begin at"),
          limit: z.number().int().min(1).optional().describe("The most characters to return"),
        }),
        execute: answer("load_tool_history"),
      }),
      search_tool_history: createTool({
        id: "search_tool_history",
        description: "Search all archived tool results; returns the best passages and their UUIDs.",
        inputSchema: z.object({
          query: z.string().describe("What to look for"),
          limit: z.number().int().min(1).optional().describe("The most results to return"),
        }),
        execute: answer("search_tool_history"),
      }),
    };
  }

  async #compiled({ prompt, messageList, requestContext, abortSignal }: ProcessLLMRequestArgs) {
    const place = this.#placeIn(requestContext);
    if (place === undefined) {
      return undefined;
    }
    try {
      const { windowTokens, windowFor, language, timezone } = this.#options;
      const turnId = messageList?.get.all.db().findLast((message) => message.role === "user")?.id;
      const given = prompt as unknown as LanguageModelV4Prompt;
      const window = { windowTokens, windowFor, language, timezone, signal: abortSignal };
      const compiled = await this.#turns.prepared(place, { ...window, prompt: given, version: "v2", turnId });
      return compiled === undefined ? undefined : { prompt: compiled as unknown as typeof prompt };
    } catch (error) {
      abortSignal?.throwIfAborted();
      this.#failed(error);
      return undefined;
    }
  }

  async #completed({ result, messages, requestContext }: ProcessOutputResultArgs): Promise<MastraDBMessage[]> {
    const place = this.#placeIn(requestContext);
    if (place !== undefined && result.finishReason !== "tool-calls") {
      try {
        await this.#turns.complete(place, result.steps.at(-1)?.text ?? result.text);
      } catch (error) {
        this.#failed(error);
      }
    }
    return messages;
  }

  // -- threads ----------------------------------------------------------------------------------------------------------

  /** The thread; null, too, while the service cannot be reached, so that an agent can answer without it. */
  override async getThreadById({ threadId }: { threadId: string }): Promise<StorageThreadType | null> {
    return this.#unlessAway(null, async () => {
      const place = this.#place(threadId, this.#owners.get(threadId) ?? (await this.#owner(threadId)));
      const found = await unlessMissing(this.#client.getConversation(scope(place)));
      return found === undefined ? null : this.#thread(found, await this.#notes(place));
    });
  }

  override async listThreads(args: MemoryOf<"listThreads">): ReturnType<MastraMemory["listThreads"]> {
    const { filter = {}, page = 0, perPage = 100, orderBy } = args;
    const found: StorageThreadType[] = [];
    const user = filter.resourceId === undefined ? {} : { user_id: filter.resourceId };
    for await (const one of all((after) => this.#client.listConversations({ ...user, ...this.#tenant(), ...after, limit: MAX_PAGE }))) {
      const thread = this.#thread(one, await this.#notes(this.#place(one.conversation_id, one.user_id ?? undefined)));
      const wanted = Object.entries(filter.metadata ?? {});
      if (wanted.every(([name, value]) => JSON.stringify(thread.metadata?.[name]) === JSON.stringify(value))) {
        found.push(thread);
      }
    }
    const field = orderBy?.field ?? "createdAt";
    const sign = orderBy?.direction === "ASC" ? 1 : -1;
    found.sort((one, other) => sign * (one[field].getTime() - other[field].getTime()));
    const { shown, ...rest } = paged(found, page, perPage);
    return { threads: shown, ...rest };
  }

  override async saveThread({ thread }: { thread: StorageThreadType }): Promise<StorageThreadType> {
    return this.#unlessAway(thread, async () => {
      const place = this.#place(thread.id, thread.resourceId);
      await this.#note(place, { title: thread.title, metadata: thread.metadata });
      return this.#thread(await this.#client.getConversation(scope(place)), await this.#notes(place));
    });
  }

  override async updateThread({ id, title, metadata }: MemoryOf<"updateThread">): Promise<StorageThreadType> {
    const known = await this.getThreadById({ threadId: id });
    if (known === null) {
      throw new PagefileError(`There is no thread ${id}.`, "not-found");
    }
    return this.saveThread({ thread: { ...known, title: title ?? known.title, metadata: { ...known.metadata, ...metadata } } });
  }

  override async deleteThread(threadId: string): Promise<void> {
    const known = await this.getThreadById({ threadId });
    if (known !== null) {
      await this.#client.forget(scope(this.#place(threadId, known.resourceId)));
      this.#owners.delete(threadId);
    }
  }

  override async cloneThread(args: MemoryOf<"cloneThread">): ReturnType<MastraMemory["cloneThread"]> {
    const { sourceThreadId, newThreadId, title, metadata, options, resourceId } = args;
    const source = await this.getThreadById({ threadId: sourceThreadId });
    if (source === null) {
      throw new PagefileError(`There is no thread ${sourceThreadId}.`, "not-found");
    }
    if (options !== undefined || (resourceId !== undefined && resourceId !== source.resourceId)) {
      throw unsupported("A thread is cloned whole, and for the same resource");
    }
    const place = this.#place(sourceThreadId, source.resourceId);
    const last = (await this.#turnsOf(place)).at(-1);
    const id = newThreadId ?? this.generateId();
    if (last !== undefined) {
      await this.#client.fork({ ...scope(place), turn_id: last.id, id });
    }
    const thread = await this.saveThread({ thread: { ...source, id, title: title ?? source.title, metadata: metadata ?? source.metadata } });
    return { thread, clonedMessages: (await this.recall({ threadId: id, resourceId: source.resourceId, perPage: false })).messages };
  }

  // -- messages ---------------------------------------------------------------------------------------------------------

  override async recall(args: MemoryOf<"recall">): ReturnType<MastraMemory["recall"]> {
    const { threadId, resourceId, vectorSearchString, page = 0, perPage = 40, orderBy } = args;
    const messages: MastraDBMessage[] = [];
    for (const id of [threadId].flat()) {
      const place = this.#place(id, resourceId ?? this.#owners.get(id) ?? (await this.#owner(id)));
      const turns = await this.#turnsOf(place);
      const found = vectorSearchString === undefined ? undefined : await this.#client.recall({ ...scope(place), query: vectorSearchString });
      const wanted = found && new Set(found.items.map((hit) => hit.id));
      messages.push(...turns.filter((turn) => wanted?.has(turn.id) ?? true).flatMap(messagesOf));
    }
    if (orderBy?.direction === "DESC") {
      messages.reverse();
    }
    const { shown, ...rest } = paged(messages, page, perPage);
    return { messages: shown, ...rest };
  }

  /** Records messages that no run of an agent brought: those of a run are recorded as it goes. */
  override async saveMessages({ messages }: { messages: MastraDBMessage[] }): Promise<{ messages: MastraDBMessage[] }> {
    const threads = Map.groupBy(messages, (message) => message.threadId ?? "");
    for (const [threadId, said] of threads) {
      const place = this.#place(threadId, said.find((message) => message.resourceId !== undefined)?.resourceId);
      if (threadId === "" || this.#turns.openId(place) !== undefined) {
        continue;
      }
      for (const turn of turnsIn(said)) {
        await unlessMissing(this.#client.record({ ...scope(place), ...turn }), 409);
      }
    }
    return { messages };
  }

  override async deleteMessages(): Promise<void> {
    throw unsupported("Messages are deleted with their thread, or by turn: client.forget({ conversation_id, turn_id })");
  }

  // -- what Pagefile has instead: facts ---------------------------------------------------------------------------------

  override async getWorkingMemory(): Promise<string | null> {
    return null;
  }

  override async getWorkingMemoryTemplate(): Promise<null> {
    return null;
  }

  override async updateWorkingMemory(): Promise<void> {
    throw unsupported("There is no working memory: what is known about a user are facts, client.remember({ user_id, text })");
  }

  override async __experimental_updateWorkingMemoryVNext(): Promise<{ success: boolean; reason: string }> {
    return { success: false, reason: "Pagefile keeps facts instead of a working memory." };
  }

  // -- between ----------------------------------------------------------------------------------------------------------

  #failed(error: unknown): void {
    if (this.#options.onError !== undefined) {
      this.#options.onError(error);
    } else {
      console.warn("Pagefile: the memory failed, and the model is called without it.", error);
    }
  }

  /** What an agent asks before it answers; where the service cannot be reached, it goes on with `otherwise`. */
  async #unlessAway<T>(otherwise: T, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof PagefileError) || error.code !== "unreachable") {
        throw error;
      }
      this.#failed(error);
      return otherwise;
    }
  }

  #tenant() {
    return this.#options.tenant === undefined ? {} : { tenant: this.#options.tenant };
  }

  #place(threadId: string, resourceId: string | undefined): Place {
    if (resourceId !== undefined) {
      if (this.#owners.size >= MAX_OWNERS) {
        this.#owners.clear();
      }
      this.#owners.set(threadId, resourceId);
    }
    return { conversationId: threadId, userId: resourceId, tenant: this.#options.tenant };
  }

  #placeIn(requestContext: RequestContext | undefined): Place | undefined {
    const known = requestContext?.get("MastraMemory") as { thread?: { id: string; resourceId?: string }; resourceId?: string } | undefined;
    return known?.thread === undefined ? undefined : this.#place(known.thread.id, known.resourceId ?? known.thread.resourceId);
  }

  /** Whose thread it is, as its first turn says. */
  async #owner(threadId: string): Promise<string | undefined> {
    const { items } = await this.#client.listDoneTurns({ conversation_id: threadId, ...this.#tenant(), limit: 1 });
    return items[0]?.user_id ?? undefined;
  }

  async #turnsOf(place: Place): Promise<Turn[]> {
    const turns: Turn[] = [];
    const listed = all((after) => this.#client.listTurns({ ...scope(place), ...(after.after !== undefined && { after: Number(after.after) }), limit: MAX_PAGE }));
    for await (const turn of listed) {
      turns.push(turn);
    }
    return turns;
  }

  #thread(found: Conversation, notes: Notes): StorageThreadType {
    return {
      id: found.conversation_id,
      resourceId: found.user_id ?? "",
      createdAt: new Date(found.created),
      updatedAt: new Date(found.updated),
      ...notes,
    };
  }

  async #notes(place: Place): Promise<Notes> {
    const { value } = (await unlessMissing(this.#client.getSession(scope(place)))) ?? {};
    return shared(value)["mastra"] ?? {};
  }

  async #note(place: Place, notes: Notes): Promise<void> {
    const known = shared((await unlessMissing(this.#client.getSession(scope(place))))?.value);
    const value = { global_state: { shared: { ...known, mastra: notes } } };
    await this.#client.putSession({ ...scope(place), value });
  }
}

function shared(value: Record<string, unknown> | null | undefined): Record<string, Notes> {
  const state = value?.["global_state"] as { shared?: Record<string, Notes> } | undefined;
  return state?.shared ?? {};
}

function unsupported(what: string): PagefileError {
  return new PagefileError(`${what}.`, "unsupported");
}

async function unlessMissing<T>(answer: Promise<T>, status = 404): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof PagefileError && error.status === status) {
      return undefined;
    }
    throw error;
  }
}

async function* all<T>(ask: (after: { after?: string }) => Promise<{ items: T[]; next: string | null }>): AsyncGenerator<T> {
  for (let after: { after?: string } = {}; ; ) {
    const { items, next } = await ask(after);
    yield* items;
    if (next === null) {
      return;
    }
    after = { after: next };
  }
}

function paged<T>(found: T[], page: number, perPage: number | false) {
  const start = perPage === false ? 0 : page * perPage;
  const shown = perPage === false ? found : found.slice(start, start + perPage);
  return { shown, total: found.length, page, perPage, hasMore: start + shown.length < found.length };
}
