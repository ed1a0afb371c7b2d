import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { service } from "./service.ts";

const running = service();
const PAGES = ["../../../docs/zh/howto/typescript.md", "../../../docs/howto/typescript.md", "../README.md"];

/** The blocks of a page, each with the output that is shown behind it. */
function blocks(page: string): { code: string; output: string }[] {
  const text = readFileSync(new URL(page, import.meta.url), "utf8");
  const found = text.matchAll(/^```ts\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?/gms);
  return [...found].map(([, code = "", output = ""]) => ({ code, output }));
}

/** The model that the reader brings. */
const MODEL = `import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const finishReason = { unified: "stop", raw: undefined };
const chunks = [{ type: "text-start", id: "0" }, { type: "text-delta", id: "0", delta: "Nuts." }, { type: "text-end", id: "0" }, { type: "finish", usage, finishReason }];
const yourModel = new MockLanguageModelV4({
  doGenerate: async () => ({ content: [{ type: "text", text: "Nuts." }], usage, finishReason, warnings: [] }),
  doStream: async () => ({ stream: simulateReadableStream({ chunks }) }),
});
`;

for (const page of PAGES) {
  test(`${page} has a block for the client, for the AI SDK and for Mastra`, async () => {
    assert.equal(blocks(page).length, 3);
    // Each reader begins with an empty memory.
    await running.client.forget({ user_id: "marta" });
  });

  for (const [number, { code, output }] of blocks(page).entries()) {
    test(`${page}: block ${number + 1} runs with the built package, and prints what it shows`, async () => {
      const { url } = running;
      const here = code.replaceAll("http://127.0.0.1:8780", url).replaceAll("createPagefile()", `createPagefile({ baseUrl: "${url}" })`);
      // Inside of the package, which may import itself by its name.
      const folder = mkdtempSync(new URL("../readme-", import.meta.url).pathname);
      try {
        const file = join(folder, "block.ts");
        writeFileSync(file, code.includes("yourModel") ? MODEL + here : here);
        const { stdout, stderr } = await promisify(execFile)(process.execPath, [file]);
        assert.deepEqual([stdout, stderr], [output, ""]);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
}

test("what the blocks say is recorded", async () => {
  const { items } = await running.client.listTurns({ conversation_id: "holiday", user_id: "marta" });
  const asked = "What may I not eat?";
  assert.deepEqual(items.map((turn) => turn.user), ["I am allergic to nuts.", asked, asked]);
});
