// Topics that are not mirrored: the verdict, the reason, every rule in order, and the line to change.
import { html } from "../core/html.js";
import { exact, known, moment, plural } from "../core/format.js";
import { query, usePages } from "../core/pages.js";
import { route } from "../core/route.js";
import { Command } from "../parts/command.js";
import { Chips, Find } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Blocks, Failed } from "../parts/request.js";
import { Table } from "../parts/table.js";
import { FlowName, Prose, State, wordOf } from "../parts/words.js";

const COLUMNS = [
  { label: "Verdict", width: "120px" },
  { label: "Topic", width: "320px" },
  { label: "Flow", width: "190px" },
  { label: "Why not" },
];
const keyOf = (row) => `${row.flow}/${row.topic}`;

export function Unmirrored() {
  const { flow, q, state = "all" } = route.value.query;
  const list = usePages(`sparkmirror/unmirrored?${query({ flow, q, state: state === "all" ? "" : state })}`, { version: "topics", keyOf });
  const counts = list.head?.counts ?? {};
  return html`<div class="bar"><${Find} label="Filter topics" />
      <${Chips} label="Verdict" choices=${[["all", "All", counts.all], ["blocked", "Blocked", counts.blocked, "bad", "bad"], ["by rule", "By rule", counts["by rule"]]]} /></div>
    <section class="panel" ...${list.hover}>
      ${list.error ? html`<${Failed} error=${list.error} again=${list.again} what="The list of topics" />` : ""}
      ${!list.head ? (list.error ? "" : html`<${Blocks} heights=${[20, 20, 20]} />`)
        : list.head.matching ? html`<${Table} label="Topics that are not mirrored" columns=${COLUMNS} total=${list.head.matching} rowAt=${list.rowAt} keyOf=${keyOf}
            cells=${cells} detail=${(row) => html`<${Detail} of=${row} at=${list.head.now_ms} />`} rowHeight=${53} onWindow=${list.onWindow} />`
        : html`<div class="empty"><h2>${q ? `No topic matches “${q}”` : "Every topic is mirrored"}</h2><p>What is mirrored is under the other tab.</p></div>`}
    </section>`;
}

const cells = (row) => html`
  <td class="c-icon"><${State} of=${row.verdict} /></td>
  <td class="c-name"><code>${row.topic}</code>${row.count > 1 ? html`<span class="below">${plural(row.count, "topic")}</span>` : ""}</td>
  <td class="c-right second nowrap"><span class="phone">${wordOf(row.verdict)}</span><span class="desk"><${FlowName} of=${row.flow} /></span></td>
  <td class="c-under full small"><${Prose} text=${row.reason} />${row.note ? html`<span class="below"><${Prose} text=${row.note} /></span>` : ""}</td>`;

const Detail = ({ of, at }) => html`
  ${of.rules.length ? html`<ol class="rules">${of.rules.map((rule) => html`<${Rule} of=${rule} />`)}</ol>` : ""}
  ${of.count > 1 ? html`<p class="small second folded">${of.topics.slice(0, 30).map((name, i) => html`${i ? ", " : ""}<code>${name}</code>`)}${of.count > 30 ? ` and ${exact(of.count - 30)} more` : ""}</p>` : ""}
  ${known(of.since_ms) ? html`<p class="small second">Since ${moment(of.since_ms, at)}.</p>` : ""}
  ${of.remedy ? html`<p class="small second before">${html`<${Prose} text=${of.remedy.text} />`}</p>${of.remedy.command ? html`<${Command} of=${of.remedy.command} />` : ""}` : ""}
  <p class="tiny third after">The same in a terminal: <code>${of.explain}</code></p>`;

/** `passed`: true, false (it stops here), or null (not reached). */
const Rule = ({ of }) => {
  const icon = of.passed === true ? ["ok", "ok"] : of.passed === false ? ["bad", "warn"] : ["point", "mute"];
  return html`<li class=${of.passed === null ? "off" : ""}><${Icon} name=${icon[0]} tone=${icon[1]} /><code>${of.rule}</code><code>${of.value}</code>
    <span class=${of.passed === false ? "bold" : ""}>${of.verdict}</span></li>`;
};
