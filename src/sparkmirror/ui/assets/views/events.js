// Events: what happened, and why? Newest first, effects under their cause.
import { html } from "../core/html.js";
import { day, exact } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { query } from "../core/pages.js";
import { href, route } from "../core/route.js";
import { Chips, Find } from "../parts/controls.js";
import { Loaded } from "../parts/request.js";
import { EventRow } from "./event_row.js";

const KINDS = {
  problem: ["failed", "stuck", "lost", "skipped", "blocked", "unreachable", "gone"],
  change: ["created", "grew", "recreated", "synced", "action", "started", "stopped"],
  rebalance: ["rebalanced"],
};
const MOST = 500;

export function Events() {
  const { flow, q, state = "all" } = route.value.query;
  const kind = KINDS[state]?.join(",");
  const answer = useAnswer(`sparkmirror/events?${query({ flow, q, kind, limit: MOST })}`, { version: "events" });
  return html`<div class="bar"><${Find} label="Filter events" placeholder="Filter: topic, group, task, person" />
      <${Chips} label="Kind" choices=${[["all", "All"], ["problem", "Problems"], ["change", "Changes"], ["rebalance", "Rebalances"]]} />
      <span class="end">newest first, effects under their cause</span></div>
    <section class="panel"><${Loaded} answer=${answer} what="The events" heights=${[20, 20, 20, 20]}>${(data) => html`<${List} data=${data} />`}<//></section>
    <p class="small third">Each worker keeps its newest 2,000 events, until it ends. Repeats are counted, not listed.
      ${" "}<a href=${`../sparkmirror/events?${query({ flow, q, kind, limit: MOST })}`} download="events.json">Download as JSON</a></p>`;
}

function List({ data }) {
  const { q } = route.value.query;
  if (!data.rows.length) {
    return html`<div class="empty"><h2>${q ? `No event matches “${q}”` : "Nothing has happened yet"}</h2>
      ${q ? html`<p><a href=${href("events")}>All events</a></p>` : html`<p>Events are kept while the workers run.</p>`}</div>`;
  }
  const days = [];
  for (const block of inBlocks(data.rows)) {
    const name = day(block[0].time_ms);
    if (days.at(-1)?.name !== name) days.push({ name, blocks: [] });
    days.at(-1).blocks.push(block);
  }
  return days.map(({ name, blocks }) => html`<h2 class="day">${name === day(data.now_ms) ? `Today, ${name}` : name}</h2>
    <ol class="events">${blocks.flatMap((block) => block.map((event, i) => html`
      <${EventRow} key=${event.id} of=${event} at=${data.now_ms} place=${block.length === 1 ? "" : i === 0 ? "cause" : i === block.length - 1 ? "last" : "effect"} />`))}</ol>
    ${data.total > data.rows.length ? html`<p class="none third small">The newest ${exact(data.rows.length)} of ${exact(data.total)}. A filter finds older ones.</p>` : ""}`);
}

/** Each cause with its effects, in the order of their times; blocks stand newest first. */
export function inBlocks(rows) {
  const ids = new Set(rows.map((row) => row.id));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const rootOf = (row) => {
    const seen = new Set();
    let root = row;
    while (ids.has(root.cause_id) && !seen.has(root.id)) {
      seen.add(root.id);
      root = byId.get(root.cause_id);
    }
    return root.id;
  };
  const blocks = new Map();
  for (const row of rows) {
    const root = rootOf(row);
    blocks.set(root, [...(blocks.get(root) ?? []), row]);
  }
  return [...blocks].map(([root, block]) => [byId.get(root), ...block.filter((row) => row.id !== root).sort((a, b) => a.time_ms - b.time_ms)]);
}
