// OpenAI's npm package: a tool call, a streamed answer, and Responses that the provider holds.
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const model = "gpt-5";
const read = { type: "function", function: { name: "read", parameters: { type: "object", properties: {} } } };
const messages = [{ role: "user", content: "Read the table, please." }];
const first = await client.chat.completions.create({ model, messages, tools: [read] });
const said = first.choices[0].message;
messages.push(said);
for (const call of said.tool_calls ?? []) {
  messages.push({ role: "tool", tool_call_id: call.id, content: "row 1: 7\nrow 2: 14" });
}
const stream = client.chat.completions.stream({ model, messages, tools: [read] });
const final = await stream.finalChatCompletion();
const one = await client.responses.create({ model, input: "How many rows?" });
const two = await client.responses.stream({ model, input: "And columns?", previous_response_id: one.id }).finalResponse();
console.log(final.choices[0].message.content, one.output_text, two.output_text);
