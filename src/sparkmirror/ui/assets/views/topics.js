// Topics: which are not fine? And those that are not mirrored: why?
import { html } from "../core/html.js";
import { exact, known, megabytes } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { query, usePages } from "../core/pages.js";
import { href, route } from "../core/route.js";
import { Chips, Find, Tabs } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Command } from "../parts/command.js";
import { Failed, Loaded, Blocks } from "../parts/request.js";
import { Table } from "../parts/table.js";
import { Count, FlowName, Prose, Seconds, State, urgency, wordOf } from "../parts/words.js";
import { Partitions } from "./partitions.js";
import { Unmirrored } from "./unmirrored.js";

const COLUMNS = [
  { label: "State", sort: "state", width: "184px" },
  { label: "Topic", sort: "topic" },
  { label: "Remote topic", tone: "wide" },
  { label: "Flow", width: "172px" },
  { label: "Partitions", sort: "partitions", tone: "num wide wider", width: "92px" },
  { label: "Behind, records", sort: "behind", tone: "num", width: "130px" },
  { label: "Lag", sort: "lag", tone: "num", width: "114px" },
  { label: "MB/s", sort: "rate", tone: "num wide wider", width: "72px" },
];
const keyOf = (row) => `${row.flow}/${row.topic}`;

export function Topics() {
  const { flow, q, tab = "mirrored", state = "all", sort, dir } = route.value.query;
  const mirrored = usePages(`sparkmirror/topics?${query({ flow, q, sort, dir, state: state === "all" ? "" : state })}`, { version: "topics", keyOf });
  const others = useAnswer(`sparkmirror/unmirrored?${query({ flow, limit: 1 })}`, { version: "topics", every: 10000 });
  const tabs = html`<${Tabs} name="tab" label="Topics" reset=${{ open: null, state: null, sort: null, dir: null }}
    choices=${[["mirrored", "Mirrored", mirrored.head?.total], ["whynot", "Not mirrored, and why", others.data?.total]]} />`;
  return html`${tabs}${tab === "whynot" ? html`<${Unmirrored} />` : html`<${Mirrored} list=${mirrored} />`}`;
}

function Mirrored({ list }) {
  const { q } = route.value.query;
  const counts = list.head?.counts ?? {};
  const rare = [["paused", "Paused"], ["unknown", "Unknown"]].filter(([state]) => counts[state]);
  const choices = [["all", "All", counts.all], ["problem", "Problems", counts.problem, "bad", "bad"], ["catching up", "Catching up", counts["catching up"]],
    ["live", "Live", counts.live], ["idle", "Idle", counts.idle], ...rare.map(([state, word]) => [state, word, counts[state]]), ["drift", "Settings differ", counts.drift]];
  return html`<div class="bar"><${Find} label="Filter topics" /><${Chips} label="State" choices=${choices} />
      <span class="end">${list.head ? `${exact(list.head.matching)} of ${exact(list.head.total)}` : ""}</span></div>
    <section class="panel" ...${list.hover}>
      ${list.error ? html`<${Failed} error=${list.error} again=${list.again} what="The list of topics" />` : ""}
      ${!list.head ? (list.error ? "" : html`<${Blocks} heights=${[20, 20, 20, 20]} />`)
        : list.head.matching ? html`<${Table} label="Mirrored topics" columns=${COLUMNS} total=${list.head.matching} rowAt=${list.rowAt} keyOf=${keyOf}
            cells=${cells} detail=${(row) => html`<${Detail} of=${row} />`} sorted=${{ by: "state", dir: "desc" }} onWindow=${list.onWindow} />`
        : html`<${Nothing} q=${q} />`}
    </section>`;
}

const Nothing = ({ q }) => html`<div class="empty"><h2>${q ? `No topic matches “${q}”` : "No topic here"}</h2>
  <p>A topic that is not mirrored is under <a href=${href("topics", { tab: "whynot", q })}>Not mirrored, and why</a>.</p></div>`;

function cells(row) {
  const [word, ...rest] = row.word.split(/ (?=\d)/);
  const isBad = row.state === "failed" || row.state === "stuck";
  return html`
    <td class="c-icon"><${State} of=${row.state} word=${word} note=${rest.join(" ")} /></td>
    <td class="c-name"><code title=${row.topic}>${row.topic}</code></td>
    <td class="c-right wide"><span class="phone">${row.word}</span><span class="desk"><code class="second" title=${row.target_topic}>${row.target_topic}</code>
      ${row.differences?.length ? html`<span class="differs small"><${Icon} name="info" tone="info" />${row.differences.length} ${row.differences.length === 1 ? "setting differs" : "settings differ"}</span>` : ""}</span></td>
    <td class="c-under second nowrap"><${FlowName} of=${row.flow} /></td>
    <td class="num wide wider">${exact(row.partitions.total)}</td>
    <td class="num"><${Count} of=${row.records_behind} why=${row.unknown.records_behind} /></td>
    <td class="num c-value ${isBad ? "bold" : ""}"><${Seconds} of=${row.seconds_behind} why=${row.unknown.seconds_behind} /></td>
    <td class="num wide wider">${known(row.bytes_per_second) ? (row.bytes_per_second ? megabytes(row.bytes_per_second) : html`<span class="zero">0</span>`) : html`<span class="zero" title=${row.unknown.bytes_per_second}>unknown</span>`}</td>`;
}

function Detail({ of }) {
  const answer = useAnswer(`sparkmirror/partitions?${query({ flow: of.flow, topic: of.topic })}`, { version: "topics" });
  const source = of.flow.split("->")[0];
  return html`<${Loaded} answer=${answer} what="The partitions" heights=${[20, 20]}>${(data) => html`
    ${messages(data.rows).map((row) => html`<${Message} key=${row.partition} of=${row} />`)}
    ${of.lost_records || of.skipped_records ? html`<${Missing} of=${of} />` : ""}
    ${of.differences?.length ? html`<${Differences} of=${of} />` : ""}
    <${Partitions} rows=${worstFirst(data.rows)} source=${source} label="Partitions" className="inner" />`}<//>`;
}

const worstFirst = (rows) => [...rows].sort((a, b) => urgency(a.state) - urgency(b.state) || (b.seconds_behind ?? 0) - (a.seconds_behind ?? 0));

/** Partitions with a problem, each message once. */
const messages = (rows) => rows.filter((row, i) => row.problem && rows.findIndex((other) => other.problem === row.problem) === i);

const Message = ({ of }) => html`<div class="message"><${Icon} name=${of.state === "failed" ? "bad" : "warn"} tone=${of.state === "failed" ? "bad" : "warn"} />
  <div><b><code>${of.topic}-${of.partition}</code> ${wordOf(of.state).toLowerCase()}</b>
    <div class="why"><${Prose} text=${of.problem} />${of.remedy ? html` <${Prose} text=${of.remedy.text} />` : ""}</div>
    ${of.remedy?.command ? html`<${Command} of=${of.remedy.command} />` : ""}</div>
  <a class="button little" href=${of.state === "failed" ? href("connectors", { flow: of.flow, c: of.connector }) : href("events", { flow: of.flow, q: of.topic })}>
    ${of.state === "failed" ? `Open task ${of.task}` : "Events"}</a></div>`;

const Missing = ({ of }) => html`<div class="message"><${Icon} name="bad" tone="bad" /><div><b>Not all records are on the target</b>
  <div class="why">${exact(of.lost_records)} offsets were deleted on the source before they were copied, ${exact(of.skipped_records)} records were skipped by <code>errors.tolerance</code>.</div></div>
  <a class="button little" href=${href("events", { flow: of.flow, q: of.topic })}>Events</a></div>`;

const Differences = ({ of }) => html`<div class="message"><${Icon} name="info" tone="info" /><div><b>Settings differ on <code>${of.target_topic}</code></b>
  <ul class="why">${of.differences.map((each) => html`<li><${Difference} of=${each} /></li>`)}</ul></div></div>`;

const Difference = ({ of }) => html`<code>${of.key}</code>: <code>${of.source || "default"}</code> on the source, <code>${of.target || "default"}</code> on the target`;
