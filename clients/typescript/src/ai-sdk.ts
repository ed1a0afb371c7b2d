/** Middleware for language models of the AI SDK: `wrapLanguageModel({ model, middleware: pagefileMiddleware({ … }) })`. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
  LanguageModelV4GenerateResult,
  LanguageModelV4Middleware,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { Pagefile } from "./client.ts";
import { MEMORY_TOOLS, type Place, type Preparation, Turns, type WindowOptions } from "./turns.ts";

export interface MiddlewareOptions extends WindowOptions {
  client: Pagefile;
  /** The conversation; `providerOptions: { pagefile: { conversationId } }` of a call goes first. */
  conversationId?: string;
  userId?: string;
  tenant?: string;
  /** Whether the model is offered the tools that read archived results; true by default. */
  tools?: boolean;
  /** What to do when the memory fails: the call goes on without it. Warns on the console by default; throw to stop the call. */
  onError?: (error: unknown) => void;
}

/** What a call may say in `providerOptions.pagefile`. */
export interface PagefileCallOptions {
  conversationId?: string;
  userId?: string;
  tenant?: string;
  /** The id of the turn, to take it up again in another process, such as after an approval. */
  turnId?: string;
}

/** After this many rounds of its own tools the model must answer with what it has. */
const MAX_ROUNDS = 8;

/** Records each turn, and sends the model the window that fits, with archived tool results within reach. */
export function pagefileMiddleware(options: MiddlewareOptions): LanguageModelV4Middleware {
  const memory = new Memory(options);
  return {
    specificationVersion: "v4",
    wrapGenerate: async ({ doGenerate, params, model }) => {
      const call = await memory.begun(params);
      return call === undefined ? doGenerate() : generated(call, model);
    },
    wrapStream: async ({ doStream, params, model }) => {
      const call = await memory.begun(params);
      return call === undefined ? doStream() : streamed(call, model);
    },
  };
}

class Memory {
  readonly options: MiddlewareOptions;
  readonly turns: Turns;
  #tools: Promise<LanguageModelV4FunctionTool[]> | undefined;

  constructor(options: MiddlewareOptions) {
    this.options = options;
    this.turns = new Turns(options.client);
  }

  failed(error: unknown): void {
    (this.options.onError ?? warn)(error);
  }

  /** A call whose turn is recorded and whose window is made; undefined where the memory fails or has nothing to do. */
  async begun(params: LanguageModelV4CallOptions): Promise<Call | undefined> {
    const said = (params.providerOptions?.["pagefile"] ?? {}) as PagefileCallOptions;
    const conversationId = said.conversationId ?? this.options.conversationId;
    if (conversationId === undefined) {
      throw new Error("Name the conversation: pagefileMiddleware({ conversationId }), or providerOptions: { pagefile: { conversationId } }.");
    }
    const place = { conversationId, userId: said.userId ?? this.options.userId, tenant: said.tenant ?? this.options.tenant };
    try {
      const call = new Call(this, place, params, await this.#offered(params));
      return (await call.prepare(said.turnId)) ? call : undefined;
    } catch (error) {
      params.abortSignal?.throwIfAborted();
      this.failed(error);
      return undefined;
    }
  }

  /** The tools of the memory that the caller does not have already. */
  async #offered(params: LanguageModelV4CallOptions): Promise<LanguageModelV4FunctionTool[]> {
    if (this.options.tools === false || params.toolChoice?.type === "none") {
      return [];
    }
    this.#tools ??= listed(this.options.client).catch((error: unknown) => {
      this.#tools = undefined;
      throw error;
    });
    const taken = new Set(params.tools?.map((tool) => tool.name));
    return (await this.#tools).filter((tool) => !taken.has(tool.name));
  }
}

async function listed(client: Pagefile): Promise<LanguageModelV4FunctionTool[]> {
  const { items } = await client.listTools({ shape: "plain" });
  return items.flatMap((tool) =>
    "parameters" in tool
      ? [{ type: "function", name: tool.name, description: tool.description, inputSchema: tool.parameters as LanguageModelV4FunctionTool["inputSchema"] }]
      : [],
  );
}

function warn(error: unknown): void {
  console.warn("Pagefile: the memory failed, and the model is called without it.", error);
}

/** One call of the model by the AI SDK, in as many rounds as the memory's tools take. */
class Call {
  readonly #memory: Memory;
  readonly #place: Place;
  readonly #params: LanguageModelV4CallOptions;
  readonly #tools: LanguageModelV4FunctionTool[];
  /** What the model is called with. */
  params: LanguageModelV4CallOptions;
  rounds = 0;

  constructor(memory: Memory, place: Place, params: LanguageModelV4CallOptions, tools: LanguageModelV4FunctionTool[]) {
    this.#memory = memory;
    this.#place = place;
    this.#params = params;
    this.#tools = tools;
    this.params = params;
  }

  async prepare(turnId: string | undefined): Promise<boolean> {
    const prompt = await this.#memory.turns.prepared(this.#place, { ...this.#asked(), turnId });
    if (prompt !== undefined) {
      this.params = this.#with(prompt);
    }
    return prompt !== undefined;
  }

  /** Records what was generated; whether the model is to be called again, with the answers of the memory's tools. */
  async goesOn(content: readonly LanguageModelV4Content[]): Promise<boolean> {
    try {
      if (!(await this.#memory.turns.generated(this.#place, content, this.#params.abortSignal))) {
        return false;
      }
      this.rounds++;
      if (this.rounds > MAX_ROUNDS) {
        throw new Error(`The model called the tools of the memory ${this.rounds} times for one answer.`);
      }
      this.params = this.#with(await this.#memory.turns.window(this.#place, this.#asked()));
      return true;
    } catch (error) {
      this.#params.abortSignal?.throwIfAborted();
      this.#memory.failed(error);
      return false;
    }
  }

  async abort(): Promise<void> {
    await this.#memory.turns.abort(this.#place).catch((error: unknown) => this.#memory.failed(error));
  }

  isOurs(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name) && MEMORY_TOOLS.has(name);
  }

  #asked(): Preparation {
    const { windowTokens, windowFor, language, timezone } = this.#memory.options;
    const { prompt, abortSignal, maxOutputTokens, tools = [] } = this.#params;
    const schemas = [...tools, ...this.#tools].filter((tool) => tool.type === "function");
    return { windowTokens, windowFor, language, timezone, prompt, version: "v4", tools: schemas, answerTokens: maxOutputTokens, signal: abortSignal };
  }

  #with(prompt: LanguageModelV4CallOptions["prompt"]): LanguageModelV4CallOptions {
    const offered = this.rounds < MAX_ROUNDS ? this.#tools : [];
    const tools = [...(this.#params.tools ?? []), ...offered];
    return { ...this.#params, prompt, ...(tools.length > 0 && { tools }) };
  }
}

// -- at once ------------------------------------------------------------------------------------------------------------

async function generated(call: Call, model: LanguageModelV4): Promise<LanguageModelV4GenerateResult> {
  let usage: LanguageModelV4Usage | undefined;
  for (;;) {
    // Where it fails the turn stays open: the AI SDK calls again, with the same prompt.
    const result = await model.doGenerate(call.params);
    usage = added(usage, result.usage);
    if (!(await call.goesOn(result.content))) {
      const content = result.content.filter((part) => part.type !== "tool-call" || !call.isOurs(part.toolName));
      return { ...result, content, usage };
    }
  }
}

// -- streamed -----------------------------------------------------------------------------------------------------------

async function streamed(call: Call, model: LanguageModelV4): Promise<LanguageModelV4StreamResult> {
  const first = await model.doStream(call.params);
  const parts = rounds(call, model, first.stream);
  const stream = new ReadableStream<LanguageModelV4StreamPart>({
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (done) {
          controller.close();
        } else {
          controller.enqueue(value);
        }
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
  return { ...first, stream };
}

async function* rounds(
  call: Call,
  model: LanguageModelV4,
  first: ReadableStream<LanguageModelV4StreamPart>,
): AsyncGenerator<LanguageModelV4StreamPart, undefined> {
  let stream = first;
  let usage: LanguageModelV4Usage | undefined;
  let over = false;
  try {
    for (;;) {
      const round = new Round(call);
      for await (const part of read(stream)) {
        const shown = round.take(part);
        if (shown !== undefined) {
          yield shown;
        }
      }
      if (round.finish === undefined || round.failed) {
        return undefined;
      }
      usage = added(usage, round.finish.usage);
      if (!(await call.goesOn(round.content))) {
        over = true;
        yield { ...round.finish, usage };
        return undefined;
      }
      stream = (await model.doStream(call.params)).stream;
    }
  } finally {
    if (!over) {
      await call.abort();
    }
  }
}

async function* read<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      yield next.value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** What a model streams in one round: gathered for the log, and passed on but for the memory's own calls. */
class Round {
  readonly content: LanguageModelV4Content[] = [];
  finish: Extract<LanguageModelV4StreamPart, { type: "finish" }> | undefined;
  failed = false;
  readonly #call: Call;
  readonly #texts = new Map<string, Extract<LanguageModelV4Content, { type: "text" }>>();
  readonly #hidden = new Set<string>();

  constructor(call: Call) {
    this.#call = call;
  }

  /** The part for the caller; undefined for one that is kept back. */
  take(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart | undefined {
    switch (part.type) {
      case "stream-start":
      case "response-metadata":
        return this.#call.rounds === 0 ? part : undefined;
      case "text-start": {
        const text = { type: "text" as const, text: "" };
        this.#texts.set(part.id, text);
        this.content.push(text);
        return this.#named(part);
      }
      case "text-delta": {
        const text = this.#texts.get(part.id);
        if (text !== undefined) {
          text.text += part.delta;
        }
        return this.#named(part);
      }
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.#named(part);
      case "tool-input-start":
        if (this.#call.isOurs(part.toolName)) {
          this.#hidden.add(part.id);
        }
        return this.#hidden.has(part.id) ? undefined : part;
      case "tool-input-delta":
      case "tool-input-end":
        return this.#hidden.has(part.id) ? undefined : part;
      case "tool-call":
        this.content.push(part);
        return this.#call.isOurs(part.toolName) ? undefined : part;
      case "tool-result":
        this.content.push(part);
        return part;
      case "finish":
        this.finish = part;
        return undefined;
      case "error":
        this.failed = true;
        return part;
      default:
        return part;
    }
  }

  /** Ids begin again in each round, and belong to one stream outside. */
  #named<P extends { id: string }>(part: P): P {
    return this.#call.rounds === 0 ? part : { ...part, id: `${this.#call.rounds}/${part.id}` };
  }
}

function added(before: LanguageModelV4Usage | undefined, now: LanguageModelV4Usage): LanguageModelV4Usage {
  if (before === undefined) {
    return now;
  }
  return {
    ...now,
    inputTokens: {
      total: sum(before.inputTokens.total, now.inputTokens.total),
      noCache: sum(before.inputTokens.noCache, now.inputTokens.noCache),
      cacheRead: sum(before.inputTokens.cacheRead, now.inputTokens.cacheRead),
      cacheWrite: sum(before.inputTokens.cacheWrite, now.inputTokens.cacheWrite),
    },
    outputTokens: {
      total: sum(before.outputTokens.total, now.outputTokens.total),
      text: sum(before.outputTokens.text, now.outputTokens.text),
      reasoning: sum(before.outputTokens.reasoning, now.outputTokens.reasoning),
    },
  };
}

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);
}
