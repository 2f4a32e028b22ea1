// The frame: views and flows in the rail, the title, the time of the data, and what is not live.
import { html } from "../core/html.js";
import { useState } from "../vendor/hooks.js";
import { known, plain, roughly, second, zone, setLocal, isLocal } from "../core/format.js";
import { isLive, link, now, overview, retryNow } from "../core/live.js";
import { VIEWS, go, href, route } from "../core/route.js";
import { Segments } from "../parts/controls.js";
import { Icon, Mark } from "../parts/icon.js";
import { FlowName, StateIcon } from "../parts/words.js";
import { Ranges } from "./flow.js";
import { openProblems } from "./verdict.js";

const ONE_FLOW = new Set(["flow", "failover"]);
const THEMES = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]];
const LINKED = { topics: "topics", groups: "groups", connectors: "connectors", events: "events", flow: "flow", failover: "failover" };

/** The flow of the address; views of one flow show the worst when none is chosen. */
export function chosenFlow(data) {
  const { view, query } = route.value;
  if (query.flow) return query.flow;
  if (!ONE_FLOW.has(view) || !data?.flows.length) return null;
  const worst = openProblems(data).find((problem) => problem.flow)?.flow;
  return worst ?? data.flows[0].flow;
}

/** Problems per view, as the rail shows them: [count, level]. */
export function counts(data) {
  const found = {};
  const add = (view, level, count = 1) => {
    const [sum, worst] = found[view] ?? [0, "warn"];
    found[view] = [sum + count, level === "bad" ? "bad" : worst];
  };
  for (const problem of data ? openProblems(data) : []) {
    if (problem.topic) add("topics", problem.level);
    if (problem.code === "failed" && problem.connector) add("connectors", problem.level);
    const view = LINKED[problem.link?.view];
    if (view && !problem.topic && !(view === "connectors" && problem.code === "failed")) add(view, problem.level);
  }
  for (const note of data?.notes ?? []) {
    const number = Number(/^\d+/.exec(note.text)?.[0] ?? 1);
    if (note.link?.view === "groups") add("groups", "warn", number);
  }
  return found;
}

export function Shell({ children }) {
  const data = overview.value;
  const { view } = route.value;
  const title = VIEWS.find(([name]) => name === view)[1];
  const problems = data ? openProblems(data).length : 0;
  document.title = `${problems ? `(${problems}) ` : ""}${title} \u2013 sparkmirror`;
  const found = counts(data);
  return html`<div class="frame ${data && !isLive.value ? "stale" : ""}">
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <header class="rail"><a class="brand" href=${href("overview", { flow: null })}><${Mark} />sparkmirror</a>
      <nav aria-label="Views">${VIEWS.map(([name, word]) => html`<a key=${name} href=${href(name)} aria-current=${name === view ? "page" : undefined}>${word}<${Badge} of=${found[name]} /></a>`)}</nav>
      <${Flows} data=${data} />
      <div class="foot"><${Theme} /><${Who} data=${data} /></div></header>
    <main class="page" id="main" tabindex="-1"><${Banner} data=${data} /><${Top} title=${title} data=${data} /><div class="stack">${children}</div></main>
    <${Bottom} found=${found} data=${data} />
  </div>`;
}

function skip(event) {
  event.preventDefault(); // the address keeps the view
  document.getElementById("main").focus();
}

const Badge = ({ of }) => (of ? html`<span class="count ${of[1]}"><${Icon} name=${of[1]} />${of[0]}<span class="sr"> problems</span></span>` : "");

function Flows({ data }) {
  const chosen = chosenFlow(data);
  return html`<nav class="scope" aria-label="Flows"><h2>Flows</h2>
    <a href=${href(ONE_FLOW.has(route.value.view) ? "overview" : route.value.view, { flow: null })} aria-current=${chosen ? undefined : "true"}>All flows</a>
    ${data ? "" : html`<p class="tiny third nothing">Asking\u2026</p>`}${data && !data.flows.length ? html`<p class="tiny third nothing">None yet</p>` : ""}
    ${data?.flows.map((flow) => html`<a key=${flow.flow} href=${href(route.value.view, { flow: flow.flow })} aria-current=${chosen === flow.flow ? "true" : undefined} title=${flow.word}>
      <span class="cut"><${FlowName} of=${flow.flow} /></span><span class="lag">${known(flow.seconds_behind) ? plain(roughly(flow.seconds_behind)) : "unknown"}</span><${StateIcon} of=${flow.state} /><span class="sr">${flow.word}</span></a>`)}</nav>`;
}

function Theme() {
  const [chosen, setChosen] = useState(globalThis.theme.chosen());
  return html`<${Segments} label="Theme" choices=${THEMES} chosen=${chosen} onChoose=${(theme) => { globalThis.theme.choose(theme); setChosen(theme); }} />`;
}

function Who({ data }) {
  if (!data) return "";
  const { who, workers } = data;
  return html`<div>${who.authenticated ? html`<b>${who.name}</b>, ${who.role === "viewer" ? "viewer (read-only)" : who.role}` : html`<b>No login is asked for:</b> ${who.role === "viewer" ? "anyone can read" : "anyone can change things"}`}<br />
    <b>${data.worker}</b>${workers.length > 1 ? `, one of ${workers.length} workers` : ""}<br />sparkmirror ${data.version}</div>`;
}

function Banner({ data }) {
  const { state, reason, retryAt } = link.value;
  if (state === "live" || state === "connecting") return "";
  const wait = Math.max(0, Math.ceil((retryAt - now.value) / 1000));
  const as_of = data ? ` Everything below is as of ${second(data.now_ms)} ${zone()}.` : "";
  const retrying = wait ? ` Trying again in ${wait} s.` : " Trying again\u2026";
  const gone = state === "gone";
  return html`<div class="banner ${gone ? "bad" : ""}" role="alert"><${Icon} name=${gone ? "bad" : "warn"} tone=${gone ? "bad" : "warn"} />
    <div>${gone ? html`<b>${data?.worker ?? "The worker"} does not answer.</b> ${reason} The mirror may well go on.<${Others} data=${data} />` : html`<b>Not live.</b> ${reason}`}${as_of}<span aria-hidden="true">${retrying}</span></div>
    <button class="button little" type="button" onClick=${retryNow}>Try now</button></div>`;
}

/** The same page on the other workers. */
const Others = ({ data }) => {
  const others = (data?.workers ?? []).filter((worker) => !worker.is_this && worker.url);
  return others.length ? html` This page at ${others.map((worker, i) => html`${i ? " or " : ""}<a href=${`${worker.url.replace(/\/$/, "")}/ui/${location.hash}`}>${worker.id}</a>`)}.` : "";
};

function Top({ title, data }) {
  const { view } = route.value;
  const flow = chosenFlow(data);
  return html`<div class="top"><h1>${title}</h1><span class="about">${flow ? html`<${FlowName} of=${flow} />` : "All flows"}</span>
    ${view === "flow" ? html`<span class="ranges"><${Ranges} /></span>` : ""}
    ${data?.flows.length ? html`<select aria-label="Flow" value=${flow ?? ""} onChange=${(event) => go({ flow: event.target.value || null, open: null, c: null })}>
      ${ONE_FLOW.has(view) ? "" : html`<option value="">All flows</option>`}${data.flows.map((each) => html`<option value=${each.flow}>${each.flow.replace("->", " \u2192 ")}</option>`)}</select>` : ""}
    <${Clock} data=${data} /></div>`;
}

/** The time of the data. A click turns UTC into this machine's zone and back. */
function Clock({ data }) {
  const [local, setShown] = useState(isLocal());
  const turn = () => { setLocal(!local); setShown(!local); overview.value = { ...overview.value }; };
  if (!data) return html`<span class="clock"><${Icon} name="unknown" tone="mute" />Connecting\u2026</span>`;
  const live = isLive.value;
  return html`<button class="clock" type="button" onClick=${turn} title=${local ? "Show times in UTC" : "Show times in this machine's zone"}>
    <${Icon} name=${live ? "dot" : "warn"} tone=${live ? "ok" : "warn"} /><b>${live ? "Live" : "Not live"}</b><span>${second(data.now_ms)}<span class="zone"> ${zone()}</span></span></button>`;
}

function Bottom({ found, data }) {
  const [more, setMore] = useState(false);
  const { view } = route.value;
  const rest = ["flow", "connectors", "events"];
  const hidden = rest.reduce((sum, name) => sum + (found[name]?.[0] ?? 0), 0);
  const item = (name, word) => html`<a href=${href(name)} aria-current=${name === view ? "page" : undefined} onClick=${() => setMore(false)}><${Icon} name=${name} />${word}<${Dot} of=${found[name]} /></a>`;
  return html`<nav class="bottom" aria-label="Views">
    ${more ? html`<div class="sheet" id="more">${rest.map((name) => html`<a href=${href(name)} aria-current=${name === view ? "page" : undefined} onClick=${() => setMore(false)}>${VIEWS.find(([each]) => each === name)[1]}<${Badge} of=${found[name]} /></a>`)}<${Theme} /><${Who} data=${data} /></div>` : ""}
    ${item("overview", "Overview")}${item("topics", "Topics")}${item("groups", "Groups")}${item("failover", "Failover")}
    <button type="button" aria-expanded=${String(more)} aria-controls="more" class=${rest.includes(view) ? "current" : ""} onClick=${() => setMore(!more)}><${Icon} name="more" />More<${Dot} of=${hidden ? [hidden, "bad"] : null} /></button></nav>`;
}

const Dot = ({ of }) => (of ? html`<span class="dot ${of[1]}">${of[0]}<span class="sr"> problems</span></span>` : "");
