"use strict";
// Airflow's own choice of light or dark, if it has made one.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* no storage: the browser's setting counts */ }
document.addEventListener("DOMContentLoaded", () => {
  // In Airflow's navigation the page is in a frame that may not open windows: Airflow's own pages replace the frame's.
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
  // Newer figures are being read: show them, but not while somebody fills a form, and not in a page that nobody sees.
  const awaited = document.querySelector("[data-refresh]");
  let touched = false;
  document.addEventListener("input", () => { touched = true; });
  const refresh = () => {
    const focused = document.activeElement;
    if (!document.hidden && !touched && (!focused || focused === document.body || focused.id === "main")) location.reload();
    else setTimeout(refresh, 1000);
  };
  if (awaited) setTimeout(refresh, 1000 * awaited.dataset.refresh);
  // Arrow keys move between hours, so that Tab passes the table in one step.
  for (const table of document.querySelectorAll("table.heat")) {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector("a")));
    const links = rows.flat().filter(Boolean);
    // On a narrow screen the newest hour is in view.
    const newest = rows[0] && rows[0].filter(Boolean).pop(), box = table.parentElement;
    if (newest) box.scrollLeft += newest.getBoundingClientRect().right - box.getBoundingClientRect().right;
    links.forEach((link, at) => { link.tabIndex = at ? -1 : 0; });
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    table.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      const row = rows.findIndex((links) => links.includes(document.activeElement));
      if (!move || row < 0) return;
      event.preventDefault();
      let y = row + move[0], x = rows[row].indexOf(document.activeElement) + move[1];
      while (rows[y] && x >= 0 && x < 24 && !rows[y][x]) { y += move[0]; x += move[1]; }
      const next = rows[y] && rows[y][x];
      if (!next) return;
      links.forEach((link) => { link.tabIndex = -1; });
      next.tabIndex = 0;
      next.focus();
    });
  }
});
