// mem0's client for Node: node mem0_node.mjs URL, where `npm install mem0ai` was run.
import { MemoryClient } from "mem0ai";

const FILTERS = { user_id: "carol" };

async function tried(call, work, holds = Boolean) {
  let problem = null;
  let value;
  try {
    value = await work();
    if (!holds(value)) problem = `unexpected answer: ${JSON.stringify(value)}`.slice(0, 300);
  } catch (error) {
    problem = `${error.name}: ${error.message}`.slice(0, 300);
  }
  console.log(JSON.stringify({ call, problem }));
  return value;
}

async function refusal(work) {
  try {
    await work();
  } catch (error) {
    return error.name;
  }
  return "nothing";
}

const client = new MemoryClient({ apiKey: "m0-local", host: `${process.argv[2]}/mem0` });
const said = [{ role: "user", content: "I live in Bern." }, { role: "assistant", content: "Noted." }];
await tried("add", () => client.add(said, { userId: "carol", user_id: "carol" }));
const listed = await tried("getAll", () => client.getAll({ filters: FILTERS }), (one) => (one.results ?? one).length === 1);
const id = (listed.results ?? listed)[0].id;
await tried("search", () => client.search("Where does she live?", { filters: FILTERS }), (one) => (one.results ?? one)[0].id === id);
await tried("get", () => client.get(id), (one) => one.memory === "The user lives in Bern");
await tried("update", () => client.update(id, { text: "The user lives in Basel" }));
await tried("history", () => client.history(id), (one) => one.length === 2);
await tried("users", () => client.users(), (one) => one.results.some((entity) => entity.name === "carol"));
await tried("delete", () => client.delete(id));
await tried("get of a deleted one", () => refusal(() => client.get(id)), (one) => one !== "nothing");
await tried("deleteUsers", () => client.deleteUsers({ userId: "carol", user_id: "carol" }));
process.exit(0);
