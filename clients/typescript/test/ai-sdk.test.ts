import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { type MiddlewareOptions, pagefileMiddleware } from "../src/ai-sdk.ts";
import { createPagefile, type Pagefile } from "../src/index.ts";
import { service } from "./service.ts";

const running = service({ PAGEFILE_ARCHIVE__THRESHOLD: "200", PAGEFILE_ARCHIVE__PAGE_FROM: "200" });
const BULKY = Array.from({ length: 200 }, (_, day) => `Day ${day}: ${day === 137 ? "the harbour froze" : "nothing of note"}.`).join("\n");

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};
type Script = (asked: LanguageModelV4CallOptions, call: number) => LanguageModelV4Content[];

const say = (text: string): LanguageModelV4Content[] => [{ type: "text", text }];
const calling = (toolName: string, input: object, toolCallId = `call-${toolName}`): LanguageModelV4Content => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: JSON.stringify(input),
});

/** A model that answers as the script says, and remembers what it was asked. */
function scripted(script: Script) {
  const asked: LanguageModelV4CallOptions[] = [];
  const answered = (options: LanguageModelV4CallOptions) => {
    asked.push(options);
    const content = script(options, asked.length - 1);
    const unified = content.some((part) => part.type === "tool-call") ? ("tool-calls" as const) : ("stop" as const);
    return { content, finishReason: { unified, raw: undefined } };
  };
  const model = new MockLanguageModelV4({
    doGenerate: async (options) => ({ ...answered(options), usage, warnings: [] }),
    doStream: async (options) => {
      const { content, finishReason } = answered(options);
      const chunks: LanguageModelV4StreamPart[] = [
        { type: "stream-start", warnings: [] },
        ...content.flatMap(pieces),
        { type: "finish", usage, finishReason },
      ];
      return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });
  return { model, asked };
}

function pieces(part: LanguageModelV4Content): LanguageModelV4StreamPart[] {
  if (part.type === "text") {
    const half = part.text.length >> 1;
    return [
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: part.text.slice(0, half) },
      { type: "text-delta", id: "0", delta: part.text.slice(half) },
      { type: "text-end", id: "0" },
    ];
  }
  if (part.type === "tool-call") {
    return [
      { type: "tool-input-start", id: part.toolCallId, toolName: part.toolName },
      { type: "tool-input-delta", id: part.toolCallId, delta: part.input },
      { type: "tool-input-end", id: part.toolCallId },
      part,
    ];
  }
  return [];
}

function wrapped(script: Script, options: Partial<MiddlewareOptions> = {}) {
  const { model, asked } = scripted(script);
  const middleware = pagefileMiddleware({ client: running.client, userId: "marta", ...options });
  return { model: wrapLanguageModel({ model, middleware }), asked };
}

const textOf = (options: LanguageModelV4CallOptions | undefined) => JSON.stringify(options?.prompt);
const turnsOf = async (conversation_id: string, client: Pagefile = running.client) =>
  (await client.listTurns({ conversation_id, user_id: "marta" })).items;
const diary = (executed: string[]) =>
  tool({
    description: "The diary of the harbour master.",
    inputSchema: z.object({ year: z.number() }),
    execute: async ({ year }) => {
      executed.push(String(year));
      return BULKY;
    },
  });

/** Both ways of asking, which must come to the same. */
const WAYS = {
  generateText: async (options: Parameters<typeof generateText>[0]) => {
    const { text, steps, totalUsage } = await generateText(options);
    return { text, steps: steps.length, input: totalUsage.inputTokens, calls: steps.flatMap((step) => step.toolCalls.map((call) => call.toolName)) };
  },
  streamText: async (options: Parameters<typeof streamText>[0]) => {
    const result = streamText(options);
    let text = "";
    for await (const delta of result.textStream) {
      text += delta;
    }
    const steps = await result.steps;
    return { text, steps: steps.length, input: (await result.totalUsage).inputTokens, calls: steps.flatMap((step) => step.toolCalls.map((call) => call.toolName)) };
  },
};

for (const [way, ask] of Object.entries(WAYS)) {
  test(`${way}: a turn is recorded once, and the next call has it although only the new message is sent`, async () => {
    const conversationId = `plain-${way}`;
    const { model, asked } = wrapped((_, call) => say(call === 0 ? "A good name." : "Rex."), { conversationId });
    const first = await ask({ model, instructions: "Be brief.", prompt: "My dog is called Rex." });
    const second = await ask({ model, instructions: "Be brief.", prompt: "What is my dog called?" });
    assert.deepEqual([first.text, second.text], ["A good name.", "Rex."]);
    assert.match(textOf(asked[1]), /My dog is called Rex\..*A good name\..*What is my dog called\?/s);
    assert.match(textOf(asked[1]), /Be brief\./);
    const turns = await turnsOf(conversationId);
    assert.deepEqual(turns.map((turn) => [turn.user, turn.assistant, turn.status]), [
      ["My dog is called Rex.", "A good name.", "done"],
      ["What is my dog called?", "Rex.", "done"],
    ]);
  });

  test(`${way}: a bulky tool result is paged out, and the model loads what it needs`, async () => {
    const conversationId = `bulky-${way}`;
    const executed: string[] = [];
    let loaded = "";
    const { model, asked } = wrapped(
      (options, call) => {
        if (call === 0) {
          return [{ type: "text", text: "I look." }, calling("diary", { year: 1740 })];
        }
        if (call === 1) {
          return say("A long winter.");
        }
        if (call === 2) {
          const [uuid] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(textOf(options)) ?? [""];
          return [calling("load_tool_history", { uuid, query: "When did the harbour freeze?" })];
        }
        loaded = textOf(options);
        return say("On day 137.");
      },
      { conversationId },
    );
    const tools = { diary: diary(executed) };
    const first = await ask({ model, tools, stopWhen: stepCountIs(5), prompt: "How was the winter of 1740?" });
    assert.deepEqual([first.text.endsWith("A long winter."), first.steps, executed], [true, 2, ["1740"]]);
    const second = await ask({ model, tools, stopWhen: stepCountIs(5), prompt: "When did the harbour freeze?" });
    // The call of the memory's tool is answered inside: the caller sees one step, no call, and the tokens of both.
    assert.deepEqual([second.text, second.steps, second.calls, second.input], ["On day 137.", 1, [], 20]);
    assert.ok(!textOf(asked[2]).includes("nothing of note.\\nDay 150"), "the result is not in the window of a later turn");
    assert.match(loaded, /harbour froze/);
    assert.deepEqual(asked[2]?.tools?.map((one) => one.name), ["diary", "load_tool_history", "search_tool_history"]);
    const turns = await turnsOf(conversationId);
    assert.deepEqual(turns.map((turn) => turn.steps.map((step) => step.tool)), [["diary"], ["load_tool_history"]]);
    assert.ok(turns[0]?.steps[0]?.page !== null);
  });

  test(`${way}: parallel calls, one of them the memory's, are all answered`, async () => {
    const conversationId = `parallel-${way}`;
    const executed: string[] = [];
    const { model, asked } = wrapped(
      (_, call) =>
        call === 0
          ? [calling("search_tool_history", { query: "harbour" }), calling("diary", { year: 1 }, "a"), calling("diary", { year: 2 }, "b")]
          : say("Done."),
      { conversationId },
    );
    const { text, calls } = await ask({ model, tools: { diary: diary(executed) }, stopWhen: stepCountIs(5), prompt: "Look twice." });
    assert.deepEqual([text, calls, executed], ["Done.", ["diary", "diary"], ["1", "2"]]);
    const roles = asked[1]?.prompt.map((message) => message.role).slice(-5);
    assert.deepEqual(roles, ["user", "assistant", "tool", "tool", "tool"]);
    const [turn] = await turnsOf(conversationId);
    assert.deepEqual(turn?.steps.map((step) => step.call_id), ["call-search_tool_history", "a", "b"]);
  });

  test(`${way}: a memory that cannot be reached costs no answer, and says so`, async () => {
    const errors: unknown[] = [];
    const client = createPagefile({ baseUrl: "http://127.0.0.1:9", retries: 0 });
    const { model } = wrapped(() => say("Still here."), { client, conversationId: "away", onError: (error) => errors.push(error) });
    assert.equal((await ask({ model, prompt: "Hello?" })).text, "Still here.");
    assert.equal(errors.length, 1);
  });

  test(`${way}: two users of one wrapped model never mix`, async () => {
    const { model, asked } = wrapped(() => say("Noted."));
    const of = (userId: string) => ({ pagefile: { userId, conversationId: `mine-${way}-${userId}` } });
    await Promise.all([
      ask({ model, prompt: "My secret is blue.", providerOptions: of("anna") }),
      ask({ model, prompt: "My secret is green.", providerOptions: of("ben") }),
    ]);
    await ask({ model, prompt: "What is my secret?", providerOptions: of("anna") });
    assert.match(textOf(asked[2]), /blue/);
    assert.doesNotMatch(textOf(asked[2]), /green/);
  });
}

test("a call that the AI SDK repeats doubles no turn", async () => {
  let failures = 0;
  const { model } = wrapped(
    () => {
      if (failures++ === 0) {
        throw Object.assign(new TypeError("overloaded"));
      }
      return say("Now.");
    },
    { conversationId: "retried" },
  );
  await assert.rejects(generateText({ model, prompt: "Hello", maxRetries: 0 }));
  assert.equal((await generateText({ model, prompt: "Hello" })).text, "Now.");
  const turns = await turnsOf("retried");
  assert.deepEqual(turns.map((turn) => [turn.user, turn.assistant]), [["Hello", "Now."]]);
});

test("a stream that is left aborts its turn, and what the user said stays", async () => {
  const { model } = wrapped(() => say("A very long story about a harbour."), { conversationId: "left" });
  const result = streamText({ model, prompt: "Tell me a story." });
  for await (const part of result.stream) {
    if (part.type === "text-delta") {
      break;
    }
  }
  await assert.doesNotReject(async () => {
    for (;;) {
      const { items } = await running.client.listLogEntries({ conversation_id: "left", user_id: "marta" });
      const [entry] = items;
      if (entry?.kind === "turn" && entry.status !== "open") {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
});

test("the history of an agent that had no memory is taken over", async () => {
  const { model, asked } = wrapped(() => say("Lisbon."), { conversationId: "adopted" });
  await generateText({
    model,
    messages: [
      { role: "user", content: "I live in Lisbon." },
      { role: "assistant", content: "Nice." },
      { role: "user", content: "Where do I live?" },
    ],
  });
  assert.deepEqual((await turnsOf("adopted")).map((turn) => turn.user), ["I live in Lisbon.", "Where do I live?"]);
  assert.equal(textOf(asked[0]).split("I live in Lisbon.").length, 2);
});

test("a tool that the caller runs later completes the same turn, in another process, too", async () => {
  const conversationId = "approved";
  const script: Script = (_, call) => (call === 0 ? [calling("pay", { euros: 5 }, "pay-1")] : say("Paid."));
  const here = { pagefile: { turnId: "turn-7" } };
  const tools = { pay: tool({ inputSchema: z.object({ euros: z.number() }) }) };
  const first = await generateText({ model: wrapped(script, { conversationId }).model, tools, prompt: "Pay 5 euros.", providerOptions: here });
  assert.equal(first.toolCalls.length, 1);
  const later = wrapped(() => say("Paid."), { conversationId });
  const { text } = await generateText({
    model: later.model,
    tools,
    messages: [
      { role: "user", content: "Pay 5 euros." },
      ...first.responseMessages,
      { role: "tool", content: [{ type: "tool-result", toolCallId: "pay-1", toolName: "pay", output: { type: "text", value: "receipt 12" } }] },
    ],
    providerOptions: here,
  });
  assert.equal(text, "Paid.");
  const turns = await turnsOf(conversationId);
  assert.deepEqual(turns.map((turn) => [turn.id, turn.assistant, turn.steps.map((step) => step.result)]), [["turn-7", "Paid.", ["receipt 12"]]]);
});

test("images and reasoning of the running turn reach the model as they were given", async () => {
  const conversationId = "images";
  const { model, asked } = wrapped((_, call) => (call === 0 ? [{ type: "reasoning", text: "Hm.", providerMetadata: { x: { signature: "s" } } }, calling("diary", { year: 3 })] : say("A cat.")), { conversationId });
  const image = new Uint8Array(Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"));
  await generateText({
    model,
    tools: { diary: diary([]) },
    stopWhen: stepCountIs(3),
    messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, { type: "file", mediaType: "image/png", data: image }] }],
  });
  const user = asked[1]?.prompt.find((message) => message.role === "user");
  assert.deepEqual(user?.content.map((part) => part.type), ["text", "file"]);
  const assistant = asked[1]?.prompt.find((message) => message.role === "assistant");
  assert.deepEqual(assistant?.content[0], { type: "reasoning", text: "Hm.", providerOptions: { x: { signature: "s" } } });
  await generateText({ model, prompt: "And now?" });
  const earlier = asked[2]?.prompt.find((message) => message.role === "user");
  assert.deepEqual(earlier?.content.map((part) => part.type), ["text", "file"]);
});

test("a conversation has to be named", async () => {
  const { model } = wrapped(() => say("?"));
  await assert.rejects(generateText({ model, prompt: "Hello", maxRetries: 0 }), /Name the conversation/);
});
