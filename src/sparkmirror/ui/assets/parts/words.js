// Small texts: quantities with a lighter unit, names in mono, flows with an arrow, states with an icon.
import { html } from "../core/html.js";
import { duration, exact, known, moment, plain } from "../core/format.js";
import { Arrow, Icon } from "./icon.js";

/** Quantity: [["14", "min"], ["10", "s"]] with the unit lighter than its number. */
export const Quantity = ({ of }) =>
  html`<span class="nowrap tabular">${of.map(([number, unit], i) =>
    html`${i ? " " : ""}${number}${unit ? html`<span class="unit">\u00a0${unit}</span>` : ""}`)}</span>`;

/** A duration; null is unknown, and says why on hover. */
export const Seconds = ({ of, why, none = "unknown" }) =>
  known(of)
    ? of > 0
      ? html`<${Quantity} of=${duration(of)} />`
      : html`<span class="zero">0<span class="unit">\u00a0s</span></span>`
    : html`<span class="zero" title=${why ?? ""}>${none}</span>`;

export const Count = ({ of, why, none = "unknown" }) =>
  known(of)
    ? html`<span class=${of ? "tabular" : "tabular zero"}>${exact(of)}</span>`
    : html`<span class="zero" title=${why ?? ""}>${none}</span>`;

const WHOLE = 30; // longer names may break, or a phone could not show them
const classOf = (name) => (name.length <= WHOLE ? "nowrap" : "");

/** Text of the worker: what stands between backticks is a name, shown in mono. us-east stays whole. */
export const Prose = ({ text }) =>
  (text ?? "").split("`").map((part, i) =>
    i % 2 ? html`<code class=${classOf(part)}>${part}</code>`
      : part.split(/(\S+-\S+)/).map((word, j) => (j % 2 ? html`<span class=${classOf(word)}>${word}</span>` : word)));

export const FlowName = ({ of }) => {
  const [source, target] = of.split("->");
  return html`<span class="nowrap">${source}<${Arrow} />${target}</span>`;
};

export const Time = ({ at, now }) =>
  html`<time class="nowrap tabular" datetime=${new Date(at).toISOString()}>${moment(at, now)}</time>`;

const STATES = {
  live: ["Live", "ok", "quiet"],
  idle: ["Idle", "idle", "quiet idle"],
  "catching up": ["Catching up", "catching", "info"],
  paused: ["Paused", "paused", "quiet idle"],
  stopped: ["Stopped", "paused", "quiet idle"],
  stuck: ["Stuck", "warn", "warn"],
  failed: ["Failed", "bad", "bad"],
  synced: ["Synced", "ok", "quiet"],
  "partly synced": ["Partly synced", "part", "warn"],
  "not synced": ["Not synced", "warn", "warn"],
  "by rule": ["By rule", "idle", "quiet idle"],
  blocked: ["Blocked", "bad", "bad"],
  running: ["Running", "ok", "quiet"],
  unassigned: ["Unassigned", "unknown", "warn"],
  restarting: ["Restarting", "catching", "info"],
  destroyed: ["Deleted", "idle", "quiet idle"],
  unknown: ["Unknown", "unknown", "quiet idle"],
};
const known_state = (state) => STATES[(state ?? "unknown").toLowerCase()] ?? STATES.unknown;
const ORDER = ["failed", "blocked", "stuck", "not synced", "partly synced", "unassigned", "unknown",
  "catching up", "restarting", "paused", "stopped"];

/** How urgent a state is: 0 is the worst. */
export const urgency = (state) => {
  const place = ORDER.indexOf((state ?? "unknown").toLowerCase());
  return place < 0 ? ORDER.length + (state === "idle" ? 1 : 0) : place;
};
export const wordOf = (state) => known_state(state)[0];

export const State = ({ of, word, note }) => {
  const [text, icon, tone] = known_state(of);
  return html`<span class="state ${tone}"><${Icon} name=${icon} /><span class="word">${word ?? text}${
    note ? html` <span class="second">${note}</span>` : ""}</span></span>`;
};

export const StateIcon = ({ of }) => {
  const [, icon, tone] = known_state(of);
  return html`<${Icon} name=${icon} tone=${tone === "quiet" ? "ok" : tone.includes("quiet") ? "mute" : tone} />`;
};

export const spoken = (seconds) => plain(duration(seconds));
