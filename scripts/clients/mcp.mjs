// The official TypeScript client of the Model Context Protocol against `pagefile mcp`, or against a URL: prints what each call exchanged.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_MODULES}/../package.json`);
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ResourceListChangedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");

const [first, ...rest] = process.argv.slice(2);
const transport = first.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args: rest });
const client = new Client({ name: "tried", version: "1" });
let changed = 0;
client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void (changed += 1));
await client.connect(transport);
const { tools } = await client.listTools();
const progress = [];
const call = async (name, args) =>
  client.callTool({ name, arguments: args }, undefined, { onprogress: (one) => progress.push(one.progress) });
// The client checks each structured answer against the schema of its tool.
await call("remember", { text: "The user drinks tea" });
await call("record", { user: "My cat is called Miso.", assistant: "A fine name." });
const recalled = await call("recall", { query: "What is my cat called?" });
const facts = await call("facts", {});
const refused = await call("recall", { user_id: "eve", query: "x" });
const { resources } = await client.listResources();
const { contents } = await client.readResource({ uri: "pagefile://facts" });
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: "recall", arguments: { about: "cat" } });
const completed = await client.complete({
  ref: { type: "ref/prompt", name: "continue" },
  argument: { name: "conversation_id", value: "m" },
});
const gone = new AbortController();
const cancelled = client.callTool({ name: "context", arguments: { query: "cat" } }, undefined, { signal: gone.signal });
gone.abort();
const wasCancelled = await cancelled.then(() => false, () => true);
const afterwards = await call("facts", {});
console.log(
  JSON.stringify({
    tools: tools.length,
    recalled: recalled.structuredContent.items[0].text,
    facts: facts.structuredContent.items.map((one) => one.text),
    refused: refused.isError,
    resources: resources.length,
    read: contents[0].text.includes("tea"),
    prompts: prompts.length,
    prompted: prompt.messages[0].content.text.includes("Miso"),
    completed: completed.completion.values,
    progressed: progress.length > 0,
    changed: changed > 0,
    cancelled: wasCancelled && !afterwards.isError,
  }),
);
await client.close();
