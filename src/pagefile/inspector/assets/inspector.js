// The pages work without this. With it, archived results open in place and the chat streams.
// Nothing from the service is ever parsed as markup: only textContent is set.
"use strict";

async function openInPlace(event) {
  const link = event.target.closest("a[data-open]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const holder = link.parentElement;
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${link.dataset.open}&limit=12000`);
    if (!answer.ok) throw new Error(String(answer.status));
    const page = await answer.json();
    const box = document.createElement("div");
    box.className = "text whole";
    box.tabIndex = 0;
    box.textContent = page.text === null ? "∅" : page.text;
    holder.after(box);
    link.remove();
    box.focus({ preventScroll: true });
  } catch {
    window.location.assign(link.href);
  }
}

function line(place, className, text) {
  const made = document.createElement("div");
  made.className = className;
  made.textContent = text;
  place.append(made);
  return made;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    kept += value;
    const parts = kept.split("\n\n");
    kept = parts.pop();
    for (const part of parts) {
      const name = /^event: (.*)$/m.exec(part);
      const data = /^data: (.*)$/m.exec(part);
      if (name && data) yield { name: name[1], data: JSON.parse(data[1]) };
    }
  }
}

async function chat(event, area) {
  event.preventDefault();
  const form = event.target, words = area.dataset;
  const sent = new URLSearchParams(new FormData(form));
  const button = form.querySelector("button"), message = form.elements.message;
  const log = document.getElementById("chat-log");
  document.querySelectorAll(".empty").forEach((one) => one.remove());
  const turn = document.createElement("li");
  log.append(turn);
  line(turn, "bubble user", sent.get("message"));
  const happened = line(turn, "happened", "");
  const answer = line(turn, "bubble assistant", words.thinking);
  button.disabled = true;
  message.value = "";
  let begun = false;
  try {
    const response = await fetch(words.stream, { method: "POST", body: sent });
    if (!response.ok) throw new Error((await response.json()).detail);
    for await (const { name, data } of events(response.body)) {
      if (name === "token") {
        answer.textContent = begun ? answer.textContent + data.text : data.text;
        begun = true;
      } else if (name === "archived") {
        line(happened, "event", `↗ ${words.archived}: ${data.tool} · ${data.chars.toLocaleString()} ${words.chars}`);
      } else if (name === "loaded") {
        line(happened, "event", `↙ ${words.loaded}: ${data.tool} · ${data.chars.toLocaleString()} ${words.chars}`);
      } else if (name === "checkpoint") {
        line(happened, "event", `✓ ${words.checkpoint} ${data.version}`);
      } else if (name === "node" && data.node === "recall") {
        const bill = document.createElement("a");
        bill.href = words.bill + encodeURIComponent(data.told.window_id);
        bill.textContent = `${words.window}: ${data.told.tokens.toLocaleString()} / ${data.told.budget.toLocaleString()}`;
        line(happened, "event", "▤ ").append(bill);
      } else if (name === "error") {
        throw new Error(data.detail);
      }
    }
  } catch (error) {
    answer.textContent = `${words.failed}: ${error.message}`;
    answer.setAttribute("role", "alert");
  } finally {
    button.disabled = false;
    form.elements.sample.checked = false;
    message.focus();
    history.replaceState(null, "", words.place);
  }
}

// The forms of the API reference: they send what their fields say, with the key that was typed and no other.
async function tryOut(event) {
  event.preventDefault();
  const form = event.target, result = form.nextElementSibling, button = form.querySelector("button");
  const fields = new FormData(form), query = new URLSearchParams(), headers = {};
  const key = form.querySelector("[data-key]").value;
  for (const [name, value] of fields) if (name !== "body" && value) query.set(name, value);
  if (key) headers["Authorization"] = `Bearer ${key}`;
  const options = { method: form.dataset.method, headers, credentials: "omit" };
  if (fields.has("body")) {
    options.body = fields.get("body");
    headers["Content-Type"] = form.elements.body.dataset.media;
  }
  button.disabled = true;
  result.hidden = false;
  try {
    const answer = await fetch(`${form.getAttribute("action")}?${query}`.replace(/\?$/, ""), options);
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* a stream, or no JSON at all */ }
    result.textContent = `${answer.status} ${answer.statusText}\n\n${shown.slice(0, 100000)}`;
  } catch (error) {
    result.textContent = `${form.dataset.failed}: ${error.message}`;
  } finally {
    button.disabled = false;
  }
}

document.querySelectorAll("form.try").forEach((form) => form.addEventListener("submit", tryOut));
document.addEventListener("click", openInPlace);
const area = document.getElementById("chat");
if (area) {
  area.querySelector("form").addEventListener("submit", (event) => chat(event, area));
  area.querySelector("textarea").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
  });
}
