// A panel on Airflow's dashboard: the archives for which somebody has to act, and nothing when all is well. Airflow loads
// this file into its own page, gives it React, and draws what the function returns.
const NAME = "Archives in trouble";
const React = globalThis.React, h = React.createElement;
const archiver = new URL("..", import.meta.url), airflow = new URL("..", archiver);
// Seconds between two looks, and while the first ones are on their way.
const EVERY = 60, SOON = 3;

const look = async (show, isOver) => {
  let seconds = EVERY;
  if (!document.hidden) {
    try {
      const answer = await fetch(new URL("trouble", archiver), { headers: { Accept: "application/json" } });
      const known = answer.ok ? await answer.json() : { archives: [], files: [], more: 0, awaited: false };
      if (isOver()) return;
      show(known);
      seconds = known.awaited ? SOON : EVERY;
    } catch { /* the server is away: what was known stays */ }
  }
  if (!isOver()) setTimeout(look, 1000 * seconds, show, isOver);
};

const colour = (token, otherwise) => `var(--chakra-colors-${token}, ${otherwise})`;
const Link = ({ path, children }) => {
  const Routed = globalThis.ReactRouterDOM?.Link, style = { fontWeight: 600, textDecoration: "underline" };
  return Routed ? h(Routed, { to: `/${path}`, style }, children) : h("a", { href: new URL(path, airflow).href, style }, children);
};

globalThis[NAME] = () => {
  const [known, show] = React.useState({ archives: [], files: [], more: 0 });
  React.useEffect(() => {
    let over = false;
    look(show, () => over);
    return () => { over = true; };
  }, []);
  if (!known.archives.length && !known.files.length) return null;
  const box = {
    border: `1px solid ${colour("border", "#ccc")}`, borderLeft: `4px solid ${colour("border-error", "#c22")}`,
    borderRadius: "0.5rem", padding: "0.7rem 1rem", margin: "0.5rem 0", overflowWrap: "anywhere",
  };
  return h("section", { style: box, "aria-label": NAME, "data-testid": "archives-in-trouble" },
    h("h2", { style: { fontWeight: 600, marginBottom: "0.3rem" } }, NAME),
    h("ul", { style: { listStyle: "none", padding: 0 } }, known.archives.map((each) =>
      h("li", { key: each.name }, h(Link, { path: `dags/${encodeURIComponent(each.dag)}/plugin/archive` }, each.name), " ", each.cause, each.do ? h("code", { style: { display: "block" } }, each.do) : null))),
    known.files.length ? h("ul", { style: { listStyle: "none", padding: 0 } }, known.files.map((error) =>
      h("li", { key: error }, h(Link, { path: "plugin/archiver" }, "A YAML file is wrong"), ": ", error))) : null,
    known.more ? h("p", null, h(Link, { path: "plugin/archiver" }, `and ${known.more} more`)) : null);
};
