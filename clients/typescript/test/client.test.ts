import assert from "node:assert/strict";
import { test } from "node:test";
import { createPagefile, OPERATIONS, PagefileError, type AnthropicMessage, type OpenAIMessage } from "../src/index.ts";
import { listening, service } from "./service.ts";

const model = await listening((request, response) => {
  request.resume();
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const text of ["Nine", " o'clock."]) {
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`);
  }
  response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`);
  response.end("data: [DONE]\n\n");
});
const running = service({
  PAGEFILE_MODEL__NAME: "scripted",
  PAGEFILE_MODEL__BASE_URL: `http://127.0.0.1:${model.port}/v1`,
  PAGEFILE_MODEL__API_KEY: "none",
});

test("there is a method for every operation", () => {
  const client = createPagefile();
  assert.deepEqual(Object.keys(client).sort(), Object.keys(OPERATIONS).sort());
});

test("a turn is recorded, and the next window has it", async () => {
  const { client } = running;
  const here = { conversation_id: "story", user_id: "marta" };
  const turn = await client.record({ ...here, user: "My dog is called Rex.", assistant: "A good name." });
  assert.equal(turn.status, "done");
  const window = await client.context({ ...here, query: "What is my dog called?" });
  const said: OpenAIMessage[] = window.messages;
  assert.ok(said.some((message) => message.role === "user" && message.content === "My dog is called Rex."));
  const { items } = await client.listTurns(here);
  assert.deepEqual(items.map((one) => one.user), ["My dog is called Rex."]);
  const { items: conversations } = await client.listConversations({ user_id: "marta" });
  assert.deepEqual(conversations.map((one) => one.conversation_id), ["story"]);
});

test("the format decides the type of the messages", async () => {
  const { client } = running;
  const here = { conversation_id: "formats", query: "Hello" };
  const anthropic = await client.context({ ...here, instructions: "Be brief.", format: "anthropic" });
  const messages: AnthropicMessage[] = anthropic.messages;
  const system: string = anthropic.system;
  assert.equal(messages.at(-1)?.role, "user");
  assert.match(system, /Be brief\./);
  const text: string = (await client.context({ ...here, format: "text" })).text;
  assert.match(text, /Hello/);
  const responses = await client.context({ ...here, format: "responses" });
  assert.ok(responses.messages.length > 0);
});

test("messages of a provider go in and come out", async () => {
  const { client } = running;
  const here = { conversation_id: "messages" };
  const messages: OpenAIMessage[] = [
    { role: "user", content: "Weather in Oslo?" },
    { role: "assistant", content: "", tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }] },
    { role: "tool", tool_call_id: "c1", content: "Rain" },
    { role: "assistant", content: "It rains." },
  ];
  const turn = await client.record({ ...here, messages });
  assert.deepEqual((await client.getMessages({ ...here, turn_id: turn.id })).messages, messages);
});

test("a problem is an error with its code", async () => {
  await assert.rejects(running.client.getConversation({ conversation_id: "never" }), (error: unknown) => {
    assert.ok(error instanceof PagefileError);
    assert.equal(error.code, "not-found");
    assert.equal(error.status, 404);
    assert.ok(error.problem !== undefined);
    return true;
  });
});

test("a service that is not there is named", async () => {
  const { port, close } = await listening(() => undefined);
  await close();
  const client = createPagefile({ baseUrl: `http://127.0.0.1:${port}`, retries: 0 });
  await assert.rejects(client.health(), { name: "PagefileError", code: "unreachable", message: new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached`) });
});

test("a request that is repeated after a broken connection takes effect once", async () => {
  let lost = 0;
  const client = createPagefile({
    baseUrl: running.url,
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      if (lost++ === 0) {
        throw new TypeError("the connection broke behind the answer");
      }
      return answer;
    },
  });
  await client.record({ conversation_id: "once", user: "Only once", assistant: "Yes" });
  assert.equal(lost, 2);
  assert.equal((await client.listTurns({ conversation_id: "once" })).items.length, 1);
});

test("an answer is streamed, event by event", async () => {
  const { client } = running;
  let text = "";
  const names: string[] = [];
  let turnId = "";
  for await (const event of client.streamChat({ conversation_id: "streamed", message: "What time is it?", id: "turn-1" })) {
    names.push(event.event);
    if (event.event === "token") {
      text += event.data.text;
    }
    if (event.event === "done") {
      turnId = event.data.turn_id;
    }
  }
  assert.equal(text, "Nine o'clock.");
  assert.deepEqual([names[0], names.at(-1), turnId], ["turn", "done", "turn-1"]);
  const again: string[] = [];
  for await (const event of client.resumeChat({ conversation_id: "streamed", id: "turn-1" })) {
    again.push(event.event);
  }
  assert.deepEqual(again, ["turn", "token", "done"]);
  await model.close();
});

test("an export brings back what was forgotten", async () => {
  const { client } = running;
  await client.record({ conversation_id: "kept", user_id: "ana", user: "Keep me", assistant: "Kept" });
  const lines = await client.exportMemory({ user_id: "ana" });
  await client.forget({ user_id: "ana" });
  assert.equal((await client.listConversations({ user_id: "ana" })).items.length, 0);
  await client.importMemory({ lines });
  const { items } = await client.listTurns({ conversation_id: "kept", user_id: "ana" });
  assert.deepEqual(items.map((turn) => turn.assistant), ["Kept"]);
});

test("a key is sent, and a wrong one refused", async () => {
  const client = createPagefile({ baseUrl: running.url, apiKey: "pf_nobody_nothing" });
  await assert.rejects(client.listConversations(), { name: "PagefileError", status: 401 });
});
