/**
 * Prompts of the AI SDK as messages of OpenAI's chat API, which Pagefile records, and windows of Pagefile as prompts.
 *
 * The prompts of versions 2 and 4 of its specification are taken; they differ in how a file holds its data.
 */
import type {
  LanguageModelV4Content,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from "@ai-sdk/provider";
import type { components } from "./schema.ts";

type Schemas = components["schemas"];
export type ChatMessage = Schemas["OpenAIMessage"];
type Part = Schemas["OpenAIPart"];
type FunctionCall = Schemas["OpenAIFunctionCall"];
type AssistantParts = Extract<LanguageModelV4Message, { role: "assistant" }>["content"];
type ToolParts = Extract<LanguageModelV4Message, { role: "tool" }>["content"];
type ToolResult = Extract<ToolParts[number], { type: "tool-result" }>;
/** The version of the specification whose prompts are written. */
export type Version = "v2" | "v4";

// -- to messages --------------------------------------------------------------------------------------------------------

/** The messages for one of the prompt; results of a tool message are one message each. */
export function toMessages(message: LanguageModelV4Message): ChatMessage[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: userContent(message.content) }];
    case "assistant":
      return assistantMessages(message.content);
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [resultMessage(part)] : []));
  }
}

/** What a model generated, as messages. */
export function generatedMessages(content: readonly LanguageModelV4Content[]): ChatMessage[] {
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const calls = content.flatMap((part) =>
    part.type === "tool-call" ? [call(part.toolCallId, part.toolName, part.input)] : [],
  );
  const results = content.flatMap((part) =>
    part.type === "tool-result"
      ? [{ role: "tool" as const, tool_call_id: part.toolCallId, content: asText(part.result) }]
      : [],
  );
  return [...assistant(text, calls), ...results];
}

function assistantMessages(content: AssistantParts): ChatMessage[] {
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const calls = content.flatMap((part) =>
    part.type === "tool-call" ? [call(part.toolCallId, part.toolName, asText(part.input))] : [],
  );
  const results = content.flatMap((part) => (part.type === "tool-result" ? [resultMessage(part)] : []));
  return [...assistant(text, calls), ...results];
}

function assistant(text: string, calls: FunctionCall[]): ChatMessage[] {
  if (text === "" && calls.length === 0) {
    return [];
  }
  return [{ role: "assistant", content: text, ...(calls.length > 0 && { tool_calls: calls }) }];
}

function call(id: string, name: string, input: string): FunctionCall {
  return { id, type: "function", function: { name, arguments: input } };
}

function userContent(content: Extract<LanguageModelV4Message, { role: "user" }>["content"]): string | Part[] {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (texts.length === content.length) {
    return texts.join("\n");
  }
  return content.map((part) => (part.type === "text" ? { type: "text", text: part.text } : filePart(part)));
}

function filePart(part: LanguageModelV4FilePart): Part {
  const url = fileUrl(part.data, part.mediaType);
  if (url === undefined) {
    return { type: "text", text: `[${part.filename ?? part.mediaType}]` };
  }
  if (part.mediaType.startsWith("image/") || part.mediaType === "image") {
    return { type: "image_url", image_url: { url } };
  }
  return { type: "file", file: { filename: part.filename ?? "file", file_data: url } };
}

/** The data of a file as a URL; undefined for what only its provider can read. */
function fileUrl(data: unknown, mediaType: string): string | undefined {
  if (data instanceof URL) {
    return data.href;
  }
  if (data instanceof Uint8Array) {
    return `data:${mediaType};base64,${Buffer.from(data).toString("base64")}`;
  }
  if (typeof data === "string") {
    return /^(https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`;
  }
  const tagged = data as { type?: string; data?: unknown; url?: unknown; text?: string };
  switch (tagged.type) {
    case "data":
      return fileUrl(tagged.data, mediaType);
    case "url":
      return fileUrl(tagged.url, mediaType);
    case "text":
      return fileUrl(new TextEncoder().encode(tagged.text ?? ""), mediaType);
    default:
      return undefined;
  }
}

function resultMessage(part: ToolResult): ChatMessage {
  return { role: "tool", tool_call_id: part.toolCallId, content: resultText(part.output) };
}

function resultText(output: LanguageModelV4ToolResultOutput): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return asText(output.value);
    case "execution-denied":
      return output.reason ?? "denied";
    case "content":
      return output.value.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

// -- to a prompt --------------------------------------------------------------------------------------------------------

/**
 * A window as a prompt. What the running turn has in `given` is taken from there where the window shows it whole, with the
 * reasoning and the provider's options that the messages do not hold.
 */
export function toPrompt(
  messages: readonly ChatMessage[],
  given: LanguageModelV4Prompt,
  version: Version,
): LanguageModelV4Prompt {
  const own = new Originals(given);
  const names = new Map<string, string>();
  return messages.flatMap((message) => promptMessage(message, own, names, version));
}

function promptMessage(
  message: ChatMessage,
  own: Originals,
  names: Map<string, string>,
  version: Version,
): LanguageModelV4Message[] {
  switch (message.role) {
    case "system":
    case "developer":
      return [{ role: "system", content: plain(message.content) }];
    case "user":
      return [own.user(message) ?? { role: "user", content: userParts(message.content, version) }];
    case "tool":
      return [toolMessage(message.tool_call_id, plain(message.content), own, names)];
    case "assistant": {
      const calls = (message.tool_calls ?? []).filter((one): one is FunctionCall => one.type === "function");
      for (const one of calls) {
        names.set(one.id, one.function.name);
      }
      return [own.assistant(calls) ?? { role: "assistant", content: assistantParts(message.content, calls) }];
    }
  }
}

function assistantParts(content: string | Part[] | null | undefined, calls: FunctionCall[]): AssistantParts {
  const text = plain(content ?? "");
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...calls.map((one) => ({
      type: "tool-call" as const,
      toolCallId: one.id,
      toolName: one.function.name,
      input: parsedInput(one.function.arguments),
    })),
  ];
}

function toolMessage(id: string, text: string, own: Originals, names: Map<string, string>): LanguageModelV4Message {
  const original = own.result(id, text);
  const shown: ToolResult = original ?? {
    type: "tool-result",
    toolCallId: id,
    toolName: names.get(id) ?? "tool",
    output: { type: "text", value: text },
  };
  return { role: "tool", content: [shown] };
}

function userParts(content: string | Part[], version: Version): Extract<LanguageModelV4Message, { role: "user" }>["content"] {
  if (typeof content === "string") {
    return [{ type: "text", text: content }];
  }
  return content.map((part) => {
    if (part.type === "image_url") {
      return promptFile(part.image_url.url, undefined, version);
    }
    if (part.type === "file" && typeof part.file["file_data"] === "string") {
      return promptFile(part.file["file_data"], part.file["filename"], version);
    }
    return { type: "text", text: plain([part]) };
  });
}

function promptFile(url: string, filename: unknown, version: Version): LanguageModelV4FilePart {
  const [, mediaType = "image/*", base64] = /^data:([^;,]+)[^,]*;base64,(.*)$/s.exec(url) ?? [];
  const held = base64 === undefined ? new URL(url) : base64;
  const tagged = base64 === undefined ? { type: "url", url: new URL(url) } : { type: "data", data: base64 };
  const data = (version === "v4" ? tagged : held) as LanguageModelV4FilePart["data"];
  return { type: "file", mediaType, data, ...(typeof filename === "string" && { filename }) };
}

function plain(content: string | Part[]): string {
  if (typeof content === "string") {
    return content;
  }
  return content
    .map((part) => (part.type === "text" ? part.text : part.type === "refusal" ? part.refusal : `[${part.type}]`))
    .join("\n");
}

function parsedInput(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

/** What the caller gave for the running turn. */
class Originals {
  readonly #users: [string, LanguageModelV4Message][] = [];
  readonly #assistants = new Map<string, LanguageModelV4Message>();
  readonly #results = new Map<string, ToolResult>();

  constructor(given: LanguageModelV4Prompt) {
    for (const message of given) {
      if (message.role === "user") {
        this.#users.push([JSON.stringify(userContent(message.content)), message]);
      } else if (message.role === "assistant") {
        const key = callKey(message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : [])));
        if (key !== "") {
          this.#assistants.set(key, message);
        }
      } else if (message.role === "tool") {
        for (const part of message.content) {
          if (part.type === "tool-result") {
            this.#results.set(part.toolCallId, part);
          }
        }
      }
    }
  }

  user(message: Extract<ChatMessage, { role: "user" }>): LanguageModelV4Message | undefined {
    const content = JSON.stringify(message.content);
    return this.#users.find(([given]) => given === content)?.[1];
  }

  assistant(calls: FunctionCall[]): LanguageModelV4Message | undefined {
    return this.#assistants.get(callKey(calls.map((one) => one.id)));
  }

  result(id: string, text: string): ToolResult | undefined {
    const found = this.#results.get(id);
    return found !== undefined && resultText(found.output) === text ? found : undefined;
  }
}

function callKey(ids: string[]): string {
  return ids.toSorted().join("\n");
}
