// Pagefile's plug-in for OpenCode, written by `pagefile wrap opencode`; `pagefile unwrap opencode` removes it.
// It asks the running service and goes on without it where that is slow or down.
const SETTINGS = {/* settings */}

// What the assistant said last, by session: the event at the end of a turn does not tell.
const answers = new Map()

async function hook(session, input) {
  const key = process.env.PAGEFILE_KEY
  try {
    const answer = await fetch(`${SETTINGS.url}/agents/hook`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
      body: JSON.stringify({ agent: "opencode", project: SETTINGS.project, conversation_id: session, input }),
      signal: AbortSignal.timeout(SETTINGS.deadline_ms),
    })
    return answer.ok ? ((await answer.json()).hookSpecificOutput ?? {}) : {}
  } catch {
    return {}
  }
}

export const Pagefile = async () => ({
  "chat.message": async (input, output) => {
    const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
    if (texts.length === 0) return
    const prompt = texts.map((part) => part.text).join("\n")
    const id = output.message.id
    const told = await hook(input.sessionID, { hook_event_name: "UserPromptSubmit", prompt, prompt_id: id })
    if (told.additionalContext) {
      output.parts.push({ ...texts[0], id: `${texts[0].id}m`, synthetic: true, text: told.additionalContext })
    }
  },
  "tool.execute.after": async (input, output) => {
    const told = await hook(input.sessionID, {
      hook_event_name: "PostToolUse",
      tool_name: input.tool,
      tool_input: input.args,
      tool_response: output.output,
      tool_use_id: input.callID,
    })
    if (typeof told.updatedToolOutput === "string") output.output = told.updatedToolOutput
  },
  "experimental.session.compacting": async (input) => {
    await hook(input.sessionID, { hook_event_name: "PreCompact", trigger: "auto" })
  },
  "experimental.text.complete": async (input, output) => {
    answers.set(input.sessionID, output.text)
  },
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    const session = event.properties.sessionID
    await hook(session, { hook_event_name: "Stop", last_assistant_message: answers.get(session) ?? "" })
    answers.delete(session)
  },
})
