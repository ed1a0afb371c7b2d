// What a screen reader, a keyboard or tired eyes would stumble over; each finding is a line of text.
(() => {
  const found = [];
  const shown = (one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !one.closest(".unseen, .skip");
  const name = (one) => (one.getAttribute("aria-label") || one.textContent || one.value || one.title || "").trim();
  const where = (one) => `<${one.tagName.toLowerCase()} class="${one.getAttribute("class") || ""}"> ${name(one).slice(0, 40)}`;

  if (!document.documentElement.lang) found.push("the page names no language");
  if (!document.title) found.push("the page has no title");
  for (const one of ["main", "header", "footer", "h1"]) {
    if (document.querySelectorAll(`body > ${one}, main > ${one}`).length !== 1) found.push(`not exactly one ${one}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`id twice: ${id}`);
  let level = 0;
  for (const one of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
    if (one.closest("details:not([open])")) continue;
    const now = Number(one.tagName[1]);
    if (now > level + 1 && level) found.push(`heading jumps from ${level} to ${now}: ${where(one)}`);
    level = now;
  }
  for (const one of document.querySelectorAll("a[href], button, summary")) if (!name(one)) found.push(`no name: ${where(one)}`);
  for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!one.labels?.length && !one.getAttribute("aria-label")) found.push(`no label: ${one.name}`);
  }
  for (const one of document.querySelectorAll("svg")) {
    if (!one.getAttribute("aria-label") && one.getAttribute("aria-hidden") !== "true") found.push(`no name: ${where(one)}`);
  }
  for (const one of document.querySelectorAll("table")) if (!one.caption) found.push("a table without a caption");
  for (const one of document.querySelectorAll("nav")) if (!one.getAttribute("aria-label")) found.push("a navigation without a name");
  for (const one of document.querySelectorAll("[tabindex]")) if (Number(one.getAttribute("tabindex")) > 0) found.push("a tab order of its own");
  const end = Math.max(innerHeight, document.querySelector("body > footer").getBoundingClientRect().bottom + scrollY);
  if (document.documentElement.scrollHeight > end + 1) found.push(`blank below the footer: ${document.documentElement.scrollHeight - end}`);
  for (const one of document.querySelectorAll("nav [aria-current]")) {
    const { left, right } = one.getBoundingClientRect();
    if (left < -1 || right > innerWidth + 1) found.push(`out of sight: ${where(one)}`);
  }
  for (const one of document.querySelectorAll("main .card, main .entry")) {
    if (!one.closest("details:not([open])") && one.getBoundingClientRect().right > innerWidth - 8) found.push(`no margin: ${where(one)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`wider than the screen: ${document.documentElement.scrollWidth}`);

  const parsed = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((i) => top[i] * alpha + below[i] * (1 - alpha));
  };
  const ground = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.push(parsed(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => (top.length ? over(top, below) : below), [255, 255, 255]);
  };
  const light = (color) => {
    const [r, g, b] = color.map((part) => { const c = part / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const pale = new Set();
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest("svg") || !shown(one)) continue;
    if (![...one.childNodes].some((inner) => inner.nodeType === 3 && inner.data.trim())) continue;
    const below = ground(one), text = over(parsed(getComputedStyle(one).color), below);
    const [high, low] = [light(text), light(below)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) pale.add(`contrast ${contrast.toFixed(2)}: <${one.tagName.toLowerCase()} class="${one.className}">`);
  }
  return [...found, ...pale];
})()
