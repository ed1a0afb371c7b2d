import assert from "node:assert/strict";
import { test } from "node:test";
import type { LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { Agent } from "@mastra/core/agent";
import type { MastraModelConfig } from "@mastra/core/llm";
import { createTool } from "@mastra/core/tools";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { createPagefile } from "../src/index.ts";
import { PagefileMemory } from "../src/mastra.ts";
import { service } from "./service.ts";

const running = service({ PAGEFILE_ARCHIVE__THRESHOLD: "200", PAGEFILE_ARCHIVE__PAGE_FROM: "200" });
const BULKY = Array.from({ length: 200 }, (_, day) => `Day ${day}: ${day === 137 ? "the harbour froze" : "nothing of note"}.`).join("\n");
type Script = (asked: LanguageModelV4CallOptions, call: number) => LanguageModelV4Content[];

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const say = (text: string): LanguageModelV4Content[] => [{ type: "text", text }];
const calling = (toolName: string, input: object, toolCallId = `call-${toolName}`): LanguageModelV4Content => ({ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) });
const textOf = (options: LanguageModelV4CallOptions | undefined) => JSON.stringify(options?.prompt);

/** An agent whose model answers as the script says. */
function agent(script: Script, memory = new PagefileMemory({ client: running.client })) {
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
      const chunks = content.flatMap((part): LanguageModelV4StreamPart[] =>
        part.type === "text"
          ? [{ type: "text-start", id: "0" }, { type: "text-delta", id: "0", delta: part.text }, { type: "text-end", id: "0" }]
          : part.type === "tool-call"
            ? [part]
            : [],
      );
      const all: LanguageModelV4StreamPart[] = [{ type: "stream-start", warnings: [] }, ...chunks, { type: "finish", usage, finishReason }];
      return { stream: simulateReadableStream({ chunks: all, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });
  const diary = createTool({
    id: "diary",
    description: "The diary of the harbour master.",
    inputSchema: z.object({ year: z.number() }),
    execute: async () => BULKY,
  });
  const one = new Agent({ id: "harbour", name: "harbour", instructions: "Be brief.", model: model as unknown as MastraModelConfig, memory, tools: { diary } });
  return { one, asked, memory };
}

const WAYS = {
  generate: async (one: Agent, prompt: string, thread: string, resource: string) => (await one.generate(prompt, { memory: { thread, resource } })).text,
  stream: async (one: Agent, prompt: string, thread: string, resource: string) => (await one.stream(prompt, { memory: { thread, resource } })).text,
};
const turnsOf = async (conversation_id: string, user_id: string) => (await running.client.listTurns({ conversation_id, user_id })).items;

for (const [way, ask] of Object.entries(WAYS)) {
  test(`${way}: turns are recorded once, and the next prompt has them`, async () => {
    const { one, asked } = agent((_, call) => say(call === 0 ? "A good name." : "Rex."));
    assert.equal(await ask(one as Agent, "My dog is called Rex.", `plain-${way}`, "marta"), "A good name.");
    assert.equal(await ask(one as Agent, "What is my dog called?", `plain-${way}`, "marta"), "Rex.");
    assert.match(textOf(asked[1]), /Be brief\..*My dog is called Rex\..*A good name\..*What is my dog called\?/s);
    const turns = await turnsOf(`plain-${way}`, "marta");
    assert.deepEqual(turns.map((turn) => [turn.user, turn.assistant, turn.status]), [
      ["My dog is called Rex.", "A good name.", "done"],
      ["What is my dog called?", "Rex.", "done"],
    ]);
  });

  test(`${way}: a bulky tool result is paged out, and the agent loads what it needs`, async () => {
    let loaded = "";
    const { one, asked } = agent((options, call) => {
      if (call === 0) {
        return [calling("diary", { year: 1740 })];
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
    });
    const thread = `bulky-${way}`;
    assert.equal(await ask(one as Agent, "How was the winter of 1740?", thread, "ben"), "A long winter.");
    assert.equal(await ask(one as Agent, "When did the harbour freeze?", thread, "ben"), "On day 137.");
    assert.ok(!textOf(asked[2]).includes("nothing of note.\\nDay 150"));
    assert.match(loaded, /harbour froze/);
    const turns = await turnsOf(thread, "ben");
    assert.deepEqual(turns.map((turn) => turn.steps.map((step) => step.tool)), [["diary"], ["load_tool_history"]]);
  });

  test(`${way}: a memory that fails costs no answer, and says so`, async () => {
    const errors: unknown[] = [];
    for (const broken of [/./, /context/]) {
      const away = createPagefile({
        baseUrl: running.url,
        retries: 0,
        fetch: async (url, init) => {
          if (broken.test(String(url))) {
            throw new TypeError("gone");
          }
          return fetch(url, init);
        },
      });
      const { one } = agent(() => say("Still here."), new PagefileMemory({ client: away, onError: (error) => errors.push(error) }));
      assert.equal(await ask(one as Agent, "Hello?", `away-${way}`, "cleo"), "Still here.");
      assert.ok(errors.splice(0).length > 0);
    }
  });
}

test("threads are kept with title and metadata, listed, updated, cloned and deleted", async () => {
  const memory = new PagefileMemory({ client: running.client });
  const made = await memory.createThread({ threadId: "thread-1", resourceId: "dora", title: "Holiday", metadata: { colour: "red" } });
  assert.deepEqual([made.id, made.title, made.metadata], ["thread-1", "Holiday", { colour: "red" }]);
  const { one } = agent(() => say("Lisbon."), memory);
  await one.generate("Where shall I go?", { memory: { thread: "thread-1", resource: "dora" } });
  // Another process, which knows the thread by its id alone.
  const other = new PagefileMemory({ client: running.client });
  assert.deepEqual([(await other.getThreadById({ threadId: "thread-1" }))?.resourceId], ["dora"]);
  const updated = await other.updateThread({ id: "thread-1", title: "Portugal", metadata: { done: true } });
  assert.deepEqual([updated.title, updated.metadata], ["Portugal", { colour: "red", done: true }]);
  const { thread, clonedMessages } = await other.cloneThread({ sourceThreadId: "thread-1", newThreadId: "thread-2" });
  assert.deepEqual([thread.id, clonedMessages.map((message) => message.role)], ["thread-2", ["user", "assistant"]]);
  const { threads, total } = await other.listThreads({ filter: { resourceId: "dora", metadata: { done: true } } });
  assert.deepEqual([total, threads.map((found) => found.id).sort()], [2, ["thread-1", "thread-2"]]);
  await other.deleteThread("thread-1");
  assert.equal(await new PagefileMemory({ client: running.client }).getThreadById({ threadId: "thread-1" }), null);
});

test("messages are saved once, and recalled by page or by meaning", async () => {
  const memory = new PagefileMemory({ client: running.client });
  const message = (id: string, role: "user" | "assistant", text: string) => ({
    id,
    role,
    createdAt: new Date(),
    threadId: "saved",
    resourceId: "emil",
    content: { format: 2 as const, parts: [{ type: "text" as const, text }] },
  });
  const messages = [message("m1", "user", "I am allergic to nuts."), message("m2", "assistant", "Noted."), message("m3", "user", "I live in Rome."), message("m4", "assistant", "Nice.")];
  await memory.saveMessages({ messages });
  await memory.saveMessages({ messages });
  const all = await memory.recall({ threadId: "saved", resourceId: "emil" });
  const text = (one: (typeof all.messages)[number]) => one.content.content;
  assert.deepEqual(all.messages.map(text), ["I am allergic to nuts.", "Noted.", "I live in Rome.", "Nice."]);
  const { messages: page, hasMore } = await memory.recall({ threadId: "saved", resourceId: "emil", perPage: 3, page: 0 });
  assert.deepEqual([page.length, hasMore], [3, true]);
  await running.client.settle({ timeout_s: 30 });
  const found = await memory.recall({ threadId: "saved", resourceId: "emil", vectorSearchString: "Which allergies does the user have?" });
  assert.ok(found.messages.map(text).includes("I am allergic to nuts."));
});

test("what there is not is said", async () => {
  const memory = new PagefileMemory({ client: running.client });
  await assert.rejects(memory.updateWorkingMemory(), /facts/);
  await assert.rejects(memory.deleteMessages(), /client\.forget/);
  assert.equal(await memory.getWorkingMemory(), null);
});
