// The address: #view?key=value. It holds everything that can be clicked into, so it can be pasted.
import { signal } from "../vendor/signals-core.js";

export const VIEWS = [
  ["overview", "Overview", "o"],
  ["flow", "Flow", "f"],
  ["topics", "Topics", "t"],
  ["groups", "Groups", "g"],
  ["connectors", "Connectors", "c"],
  ["events", "Events", "e"],
  ["failover", "Failover", "x"],
];
const NAMES = new Set(VIEWS.map(([name]) => name));

function parsed() {
  const [name, query = ""] = location.hash.slice(1).split("?");
  return {
    view: NAMES.has(name) ? name : "overview",
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

export const route = signal(parsed());
addEventListener("hashchange", () => { route.value = parsed(); });

/** The address of a view; a flow that is chosen stays chosen. */
export function href(view, query = {}) {
  const { flow } = route.value.query;
  const all = Object.entries({ flow, ...query }).filter(([, value]) => value);
  // -> and / are legal in a fragment: names stay readable when an address is pasted.
  const text = new URLSearchParams(all).toString().replaceAll("%3E", ">").replaceAll("%2F", "/");
  return `#${view}${text ? `?${text}` : ""}`;
}

/** Change some keys of this view's address: a step that Back undoes. */
export function go(changes) {
  const { view, query } = route.value;
  location.hash = href(view, { ...query, ...changes });
}

/** The same for what is typed letter by letter: no step of its own. */
export function amend(changes) {
  const { view, query } = route.value;
  history.replaceState(null, "", href(view, { ...query, ...changes }));
  route.value = parsed();
}
