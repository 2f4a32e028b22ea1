// Groups: what would a failover cost each of them?
import { html } from "../core/html.js";
import { duration, exact, known } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { query, usePages } from "../core/pages.js";
import { route } from "../core/route.js";
import { Command } from "../parts/command.js";
import { Chips, Figures, Find } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Blocks, Failed, Loaded } from "../parts/request.js";
import { Table } from "../parts/table.js";
import { Count, FlowName, Prose, Quantity, Seconds, State, wordOf } from "../parts/words.js";
import { Offset } from "./partitions.js";

const COLUMNS = [
  { label: "Sync", sort: "state" },
  { label: "Group", sort: "group" },
  { label: "Flow", tone: "wide" },
  { label: "Newest commit", tone: "wide" },
  { label: "Source offset", tone: "num" },
  { label: "Target offset", tone: "num" },
  { label: "Checkpoint", sort: "checkpoint", tone: "num wide" },
  { label: "Would re-read", sort: "reread", tone: "num" },
];
const MANY = 1000;
const keyOf = (row) => `${row.flow}/${row.group}`;

export function Groups() {
  const { flow, q, state = "all", sort, dir } = route.value.query;
  const list = usePages(`sparkmirror/groups?${query({ flow, q, sort, dir, state: state === "all" ? "" : state })}`, { version: "groups", keyOf });
  const { head } = list;
  const counts = head?.counts ?? {};
  const choices = [["all", "All", counts.all], ["not synced", "Not or partly synced", counts["not synced"], "warn", "warn"], ["reread", "Would re-read", counts.reread], ["rule", "MM2's rule", counts.rule],
    ...(counts.unknown ? [["unknown", "Unknown", counts.unknown]] : [])];
  return html`${head ? html`<${Figures} of=${figures(head)} />` : ""}
    <div class="bar"><${Find} label="Filter groups" /><${Chips} label="State" choices=${choices} />
      <span class="end">${head ? `${exact(head.matching)} of ${exact(head.total)}` : ""}</span></div>
    <section class="panel" ...${list.hover}>
      ${list.error ? html`<${Failed} error=${list.error} again=${list.again} what="The list of groups" />` : ""}
      ${!head ? (list.error ? "" : html`<${Blocks} heights=${[20, 20, 20]} />`)
        : head.matching ? html`<${Table} label="Consumer groups" columns=${COLUMNS} total=${head.matching} rowAt=${list.rowAt} keyOf=${keyOf} cells=${cells}
            detail=${(row) => html`<${Detail} of=${row} />`} sorted=${{ by: "state", dir: "desc" }} rowHeight=${53} onWindow=${list.onWindow} />`
        : html`<div class="empty"><h2>${q ? `No group matches “${q}”` : "No group here"}</h2>
            <p>A group is here when <code>groups</code> matches it and it has committed on a mirrored topic. Why not: <code>sparkmirror explain group ${q || "NAME"}</code></p></div>`}
    </section>`;
}

function figures(head) {
  const { counts, unknown } = head;
  const synced = counts.all - counts["not synced"] - (counts.unknown ?? 0);
  return [
    ["Synced", html`${exact(synced)} <span class="unit">of ${exact(counts.all)} groups</span>`, counts["not synced"] ? `${exact(counts["not synced"])} not or only partly` : "every group has its place on the target"],
    ["A failover now would re-read", known(head.reread_records) ? html`<${Quantity} of=${[[exact(head.reread_records), "records"]]} />` : "unknown",
      known(head.reread_records) ? (head.reread_records ? `by ${exact(counts.reread)} of ${exact(counts.all)} groups` : "every group goes on at the very next record") : unknown.reread_records],
    ["Oldest checkpoint of an active group", known(head.oldest_checkpoint_seconds) ? html`<${Quantity} of=${duration(head.oldest_checkpoint_seconds)} />` : "\u2013", known(head.oldest_checkpoint_seconds) ? "written every emit.checkpoints.interval.seconds" : unknown.oldest_checkpoint_seconds ?? "no checkpoint yet"],
  ];
}

const note = (row) => row.reason || (row.translation === "exact" || !row.translation ? "" : "placed by MM2's rule");

const cells = (row) => html`
  <td class="c-icon"><${State} of=${row.state} /></td>
  <td class="c-name"><span class="bold">${row.group}</span>${note(row) ? html`<span class="below"><${Prose} text=${note(row)} /></span>` : ""}</td>
  <td class="c-under second nowrap wide"><${FlowName} of=${row.flow} /></td>
  <td class="c-right wide"><span class="phone">${wordOf(row.state)}</span>${row.newest ? html`<code class="second desk">${row.newest.topic}-${row.newest.partition}</code>` : html`<span class="zero desk">\u2013</span>`}</td>
  <td class="num">${row.newest ? html`<${Offset} of=${row.newest} field="committed" />` : "\u2013"}</td>
  <td class="num">${row.newest ? html`<${Offset} of=${row.newest} field="committed_on_target" />` : "\u2013"}</td>
  <td class="num second wide">${known(row.checkpoint_age_seconds) ? html`<${Quantity} of=${duration(row.checkpoint_age_seconds)} /> ago` : html`<span class="zero" title=${row.unknown.checkpoint_age_seconds ?? row.not_applicable.checkpoint_age_seconds}>\u2013</span>`}</td>
  <td class="num c-value ${row.reread_records > MANY ? "bold" : ""}"><${Count} of=${row.reread_records} why=${row.unknown.reread_records} />${known(row.reread_records) ? html`<span class="phone unit"> re-read</span>` : ""}</td>`;

function Detail({ of }) {
  const answer = useAnswer(`sparkmirror/group?${query({ flow: of.flow, group: of.group })}`, { version: "groups" });
  const [source, target] = of.flow.split("->");
  return html`${of.state !== "synced" || of.reason ? html`<${Message} of=${of} />` : ""}
    <${Loaded} answer=${answer} what="The group's partitions" heights=${[20, 20]}>${(data) => html`
      <div class="inner" tabindex="0" role="region" aria-label="Partitions"><table><thead><tr><th scope="col">Partition</th><th scope="col" class="num desk">Committed on ${source}</th><th scope="col" class="num desk">Translated to ${target}</th>
        <th scope="col" class="num">Committed on ${target}</th><th scope="col" class="desk">Translation</th><th scope="col" class="num">Would re-read</th></tr></thead>
        <tbody>${data.rows.map((row) => html`<tr key=${`${row.topic}-${row.partition}`}><td><code>${row.topic}-${row.partition}</code>${row.note ? html`<span class="below"><${Prose} text=${row.note} /></span>` : ""}</td>
          <td class="num desk"><${Offset} of=${row} field="committed" /></td><td class="num desk"><${Offset} of=${row} field="translated" /></td><td class="num"><${Offset} of=${row} field="committed_on_target" /></td>
          <td class="second desk">${row.translation || "\u2013"}</td><td class="num"><${Count} of=${row.reread_records} why=${row.unknown.reread_records} /></td></tr>`)}</tbody></table></div>`}<//>`;
}

const Message = ({ of }) => html`<div class="message"><${Icon} name=${of.state === "partly synced" ? "part" : of.state === "synced" ? "info" : "warn"} tone=${of.state === "synced" ? "info" : "warn"} />
  <div><b>${wordOf(of.state)}${of.reason ? html`: <${Prose} text=${of.reason} />` : ""}</b>
    <div class="why">${known(of.synced_partitions) ? `${exact(of.synced_partitions)} of ${exact(of.partitions)} partitions have their offset on the target. ` : ""}${of.remedy ? html`<${Prose} text=${of.remedy.text} />` : ""}</div>
    ${of.remedy?.command ? html`<${Command} of=${of.remedy.command} />` : ""}</div></div>`;
