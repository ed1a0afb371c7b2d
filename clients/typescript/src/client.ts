/** The client: a method for each operation of the service, with the errors, retries and streams that all of them share. */
import { OPERATIONS } from "./operations.ts";
import type { components, operations } from "./schema.ts";

type Schemas = components["schemas"];
type OperationId = keyof typeof OPERATIONS & keyof operations;
/** What is neither sent nor answered as one JSON value. */
type Special = "context" | "streamChat" | "resumeChat" | "exportMemory" | "importMemory";

type JsonOf<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type BodyOf<Id extends OperationId> = operations[Id] extends { requestBody: infer Body } ? JsonOf<Body> : never;
type QueryOf<Id extends OperationId> = operations[Id] extends { parameters: { query?: infer Query } }
  ? Exclude<Query, undefined>
  : never;

/** What an operation takes: its body, or the parameters of its query string. */
export type Input<Id extends OperationId> = [BodyOf<Id>] extends [never]
  ? [QueryOf<Id>] extends [never]
    ? Record<never, never>
    : QueryOf<Id>
  : BodyOf<Id>;
/** What an operation answers with. */
export type Output<Id extends OperationId> = operations[Id]["responses"] extends infer Answers
  ? { [Status in keyof Answers]: Status extends 200 | 201 ? JsonOf<Answers[Status]> : never }[keyof Answers]
  : never;

export type Format = Schemas["AskContext"]["format"] & string;
/** The window of a format. */
export type Window<F extends Format = "openai"> = Extract<Schemas["AnyWindow"], { format: F }>;
export type ChatEvent = Schemas["ChatEvent"];
export type ProblemDocument = Schemas["Problem"];

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Makes a repeated request take effect once; a new one for each call by default. */
  idempotencyKey?: string | undefined;
}

type Call<I, O> = object extends I
  ? (input?: I, options?: CallOptions) => Promise<O>
  : (input: I, options?: CallOptions) => Promise<O>;

type Plain = { [Id in Exclude<OperationId, Special>]: Call<Input<Id>, Output<Id>> };

/** A service of Pagefile: each operation is a method. */
export interface Pagefile extends Plain {
  /** The window for the next model call; `format` decides the type of its messages. */
  context<F extends Format = "openai">(
    input: Omit<Input<"context">, "format"> & { format?: F },
    options?: CallOptions,
  ): Promise<Window<F>>;
  /** The answer of the service's own model, event by event; `error` events are thrown. */
  streamChat(input: Input<"streamChat">, options?: CallOptions): AsyncGenerator<ChatEvent>;
  /** An answer again, or what comes behind `lastEventId`. */
  resumeChat(
    input: Input<"resumeChat"> & { lastEventId?: string },
    options?: CallOptions,
  ): AsyncGenerator<ChatEvent>;
  /** A conversation, a user or a tenant as JSON lines. */
  exportMemory(input?: Input<"exportMemory">, options?: CallOptions): Promise<string>;
  /** Reads the lines of an export; what is there already is left as it is. */
  importMemory(
    input: Input<"importMemory"> & { lines: string },
    options?: CallOptions,
  ): Promise<Output<"importMemory">>;
}

export interface PagefileOptions {
  /** Where the service listens; http://127.0.0.1:8780 by default. */
  baseUrl?: string;
  /** A key of `pagefile keys add`. */
  apiKey?: string | undefined;
  /** How often a request is sent again when the connection fails or the service is busy; 2 by default. */
  retries?: number;
  fetch?: typeof globalThis.fetch;
}

/** A failure that the service explained, or that kept it from answering. `code` is stable. */
export class PagefileError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly problem: ProblemDocument | undefined;

  constructor(message: string, code: string, problem?: ProblemDocument, status?: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "PagefileError";
    this.code = code;
    this.problem = problem;
    this.status = status ?? problem?.status;
  }
}

const DEFAULT_URL = "http://127.0.0.1:8780";
const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";
/** A `Retry-After` beyond this is left to the caller. */
const MAX_WAIT_S = 5;
const FIRST_WAIT_MS = 100;

interface Sent {
  method: string;
  path: string;
  query?: object | undefined;
  body?: BodyInit | undefined;
  headers?: Record<string, string>;
}

/** A client of a service. */
export function createPagefile(options: PagefileOptions = {}): Pagefile {
  const sender = new Sender(options);
  const methods: Record<string, unknown> = {};
  for (const [id, row] of Object.entries(OPERATIONS)) {
    methods[id] = async (input: object = {}, call: CallOptions = {}) => {
      const headers: Record<string, string> = row.changes ? { "Idempotency-Key": call.idempotencyKey ?? crypto.randomUUID() } : {};
      return (await sender.answer(request(row, input, headers), call)).json();
    };
  }
  const stream = (sent: Sent, call: CallOptions) => events(sender, sent, call);
  const special: Pick<Pagefile, Exclude<Special, "context">> = {
    streamChat: (input, call = {}) => {
      const key: Record<string, string> = call.idempotencyKey === undefined ? {} : { "Idempotency-Key": call.idempotencyKey };
      return stream(request(OPERATIONS.streamChat, input, key), call);
    },
    resumeChat: ({ lastEventId, ...input }, call = {}) =>
      stream(request(OPERATIONS.resumeChat, input, lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId }), call),
    exportMemory: async (input = {}, call = {}) =>
      (await sender.answer(request(OPERATIONS.exportMemory, input, {}), call)).text(),
    importMemory: async ({ lines, ...query }, call = {}) => {
      const { method, path } = OPERATIONS.importMemory;
      const sent = { method, path, query, body: lines, headers: { "Content-Type": LINES_TYPE } };
      return (await (await sender.answer(sent, call)).json()) as Output<"importMemory">;
    },
  };
  return Object.assign(methods, special) as unknown as Pagefile;
}

function request(
  row: { method: string; path: string; sends: "body" | "query" },
  input: object,
  headers: Record<string, string>,
): Sent {
  const { method, path } = row;
  if (row.sends === "query") {
    return { method, path, query: input, headers };
  }
  return { method, path, body: JSON.stringify(input), headers: { ...headers, "Content-Type": JSON_TYPE } };
}

class Sender {
  readonly #options: PagefileOptions;
  readonly #base: string;

  constructor(options: PagefileOptions) {
    this.#options = options;
    this.#base = (options.baseUrl ?? DEFAULT_URL).replace(/\/+$/, "");
  }

  /** A successful response; what fails for a moment is tried again. */
  async answer(sent: Sent, call: CallOptions): Promise<Response> {
    for (let left = this.#options.retries ?? 2, wait = FIRST_WAIT_MS; ; left--, wait *= 2) {
      let pause = wait;
      try {
        const response = await this.#send(sent, call);
        if (response.ok) {
          return response;
        }
        const asked = await retryAfterMs(response);
        if (left <= 0 || asked === undefined) {
          throw await errorOf(response);
        }
        pause = asked;
      } catch (error) {
        if (error instanceof PagefileError || call.signal?.aborted) {
          throw error;
        }
        if (left <= 0) {
          const said = error instanceof Error ? error.message : String(error);
          throw new PagefileError(`The service at ${this.#base} cannot be reached: ${said}.`, "unreachable", undefined, undefined, error);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  #send(sent: Sent, call: CallOptions): Promise<Response> {
    const { apiKey, fetch = globalThis.fetch } = this.#options;
    const headers: Record<string, string> = { Accept: "*/*", ...sent.headers };
    if (apiKey !== undefined) {
      headers["Authorization"] = `Bearer ${apiKey}`;
    }
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(sent.query ?? {})) {
      if (value !== undefined && value !== null) {
        query.set(name, String(value));
      }
    }
    const search = query.size > 0 ? `?${query}` : "";
    const init: RequestInit = { method: sent.method, headers };
    if (sent.body !== undefined) {
      init.body = sent.body;
    }
    if (call.signal !== undefined) {
      init.signal = call.signal;
    }
    return fetch(`${this.#base}${sent.path}${search}`, init);
  }
}

/** How long the service asks to wait; undefined where trying again would not help. */
async function retryAfterMs(response: Response): Promise<number | undefined> {
  const running = response.status === 409 && (await problemIn(response.clone()))?.code === "idempotency-running";
  if (response.status !== 429 && response.status !== 503 && !running) {
    return undefined;
  }
  const said = Number(response.headers.get("Retry-After") ?? FIRST_WAIT_MS / 1000);
  return said <= MAX_WAIT_S ? said * 1000 : undefined;
}

async function problemIn(response: Response): Promise<ProblemDocument | undefined> {
  try {
    const found = (await response.json()) as ProblemDocument;
    return typeof found.code === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

async function errorOf(response: Response): Promise<PagefileError> {
  const problem = await problemIn(response);
  if (problem !== undefined) {
    return new PagefileError(problem.detail, problem.code, problem);
  }
  const said = `The service answered with ${response.status} and no problem document: is it Pagefile?`;
  return new PagefileError(said, "unexpected", undefined, response.status);
}

/** The events of a response; a line that breaks is taken up again behind the last event. */
async function* events(sender: Sender, sent: Sent, call: CallOptions): AsyncGenerator<ChatEvent> {
  let last: string | undefined;
  for (let broken = 0; ; broken++) {
    const headers = last === undefined ? sent.headers : { ...sent.headers, "Last-Event-ID": last };
    const response = await sender.answer({ ...sent, ...(headers && { headers }) }, call);
    try {
      for await (const event of parsed(response)) {
        last = event.id;
        broken = 0;
        if (event.event === "error") {
          throw new PagefileError(event.data.detail, event.data.code, event.data);
        }
        yield event;
        if (event.event === "done") {
          return;
        }
      }
      if (response.status === 204) {
        return;
      }
    } catch (error) {
      if (error instanceof PagefileError || call.signal?.aborted) {
        throw error;
      }
    }
    if (broken >= 2) {
      throw new PagefileError("The stream ended before the answer did.", "unreachable");
    }
  }
}

async function* parsed(response: Response): AsyncGenerator<ChatEvent> {
  if (response.body === null) {
    return;
  }
  let fields: Record<string, string> = {};
  for await (const line of lines(response.body)) {
    if (line === "") {
      if (fields["event"] !== undefined && fields["data"] !== undefined) {
        const { event, id = "", data } = fields;
        yield { event, id, data: JSON.parse(data) } as ChatEvent;
      }
      fields = {};
    } else if (!line.startsWith(":")) {
      const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      fields[name] = name === "data" && fields["data"] !== undefined ? `${fields["data"]}\n${value}` : value;
    }
  }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const parts = (rest + decoder.decode(value, { stream: !done })).split(/\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts;
      if (done) {
        return;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
