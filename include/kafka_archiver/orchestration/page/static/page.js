"use strict";
// In a frame of Airflow the page has the colours of its theme, also of a custom one; alone, those of the user's choice.
const COLOURS = {
  bg: "bg", subtle: "bg-subtle", panel: "bg-muted", line: "border", fg: "fg", soft: "fg-muted", brand: "brand-solid",
  "on-brand": "brand-contrast", focus: "brand-focus-ring",
};
// In the dark, Airflow's own tables have the next lighter ones.
const DARK = { ...COLOURS, subtle: "bg-muted", panel: "bg-emphasized", line: "border-emphasized" };
const airflow = () => { try { return window.top === window ? null : window.top.document.documentElement; } catch { return null; } };
const dress = () => {
  const root = document.documentElement, outside = airflow();
  let theme = outside && (outside.classList.contains("dark") ? "dark" : "light");
  try { theme ||= localStorage.getItem("theme"); } catch { /* no storage: the browser's setting counts */ }
  if (theme !== "dark" && theme !== "light") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = theme;
  if (!outside) return;
  const style = outside.ownerDocument.defaultView.getComputedStyle(outside);
  for (const [own, token] of Object.entries(theme === "dark" ? DARK : COLOURS)) {
    const value = style.getPropertyValue(`--chakra-colors-${token}`);
    if (value) root.style.setProperty(`--${own}`, value);
  }
};
dress();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
if (airflow()) new MutationObserver(dress).observe(airflow(), { attributes: true, attributeFilter: ["class", "style"] });

// Airflow's own pages replace the frame's page: a frame may not open windows.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  if (!link || window.top === window) return;
  try {
    const outside = window.top.document.createElement("a");
    outside.href = link.href;
    event.preventDefault();
    outside.click();
  } catch { /* another site has framed the page: the link opens here */ }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  const show = (text) => { button.textContent = text; setTimeout(() => { button.textContent = "Copy"; }, 2000); };
  navigator.clipboard?.writeText(code.textContent).then(() => show("Copied"), () => getSelection().selectAllChildren(code));
});

// Newer figures take the place of those that are shown, part by part, without a jump: a part in which somebody is at work
// stays as it is. Nothing is asked for a page that nobody sees.
let touched = false;
const shown = new Map();
document.addEventListener("input", () => { touched = true; });
const replaceLive = (fresh) => {
  for (const part of document.querySelectorAll("[data-live]")) {
    const newer = fresh.getElementById(part.id);
    if (!newer || newer.innerHTML === shown.get(part.id)) continue;
    if (part.contains(document.activeElement) || (touched && (part.querySelector("form") || part.closest("form")))) continue;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    const scrolled = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    shown.set(part.id, newer.innerHTML);
    part.innerHTML = newer.innerHTML;
    part.className = newer.className;
    part.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? details.open; });
    part.querySelectorAll(".scroll").forEach((box, at) => { box.scrollLeft = scrolled[at] ?? 0; });
    prepareHours(part);
  }
  const title = fresh.querySelector("title");
  if (title) document.title = title.textContent;
};
// Seconds until the next look: few while fresh figures are on their way.
const pause = (page) => {
  const awaited = page.querySelector("[data-refresh]"), main = page.getElementById("main");
  return Number(awaited?.dataset.refresh ?? main?.dataset.every ?? 0);
};
const refresh = async () => {
  let seconds = pause(document);
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) { location.reload(); return; }
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        replaceLive(fresh);
        // A part in which somebody is at work may still say that figures are on their way.
        seconds = pause(document);
      }
    } catch { /* the server is away: ask again */ }
  }
  if (seconds) setTimeout(refresh, 1000 * seconds);
};

// Arrow keys move between hours, so that Tab passes the table in one step.
const prepareHours = (within) => {
  for (const table of within.querySelectorAll("table.heat")) {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector("a")));
    const links = rows.flat().filter(Boolean);
    links.forEach((link, at) => { link.tabIndex = at ? -1 : 0; });
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    table.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      const row = rows.findIndex((cells) => cells.includes(document.activeElement));
      if (!move || row < 0) return;
      event.preventDefault();
      let y = row + move[0], x = rows[row].indexOf(document.activeElement) + move[1];
      while (rows[y] && x >= 0 && x < rows[y].length && !rows[y][x]) { y += move[0]; x += move[1]; }
      const next = rows[y] && rows[y][x];
      if (!next) return;
      links.forEach((link) => { link.tabIndex = -1; });
      next.tabIndex = 0;
      next.focus();
    });
  }
};
document.addEventListener("DOMContentLoaded", () => {
  prepareHours(document);
  // On a narrow screen the newest hour is in view.
  for (const table of document.querySelectorAll("table.heat")) {
    const newest = table.tBodies[0].rows[0]?.querySelector("td:last-of-type a") ?? [...table.querySelectorAll("tbody tr:first-child a")].pop();
    const box = table.parentElement;
    if (newest) box.scrollLeft += newest.getBoundingClientRect().right - box.getBoundingClientRect().right;
  }
  const seconds = pause(document);
  if (seconds) setTimeout(refresh, 1000 * seconds);
});
