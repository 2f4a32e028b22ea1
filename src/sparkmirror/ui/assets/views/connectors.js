// Connectors: what runs where, what failed, what can I do?
import { html } from "../core/html.js";
import { exact, plural } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { query } from "../core/pages.js";
import { href, route } from "../core/route.js";
import { Command } from "../parts/command.js";
import { Tabs } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Loaded } from "../parts/request.js";
import { Count, FlowName, Prose, Seconds, State } from "../parts/words.js";
import { Actions, TaskAction, pendingOf } from "./actions.js";
import { Offsets } from "./offsets.js";

const failedTasks = (row) => row.tasks.filter((task) => task.state === "FAILED");
const isChosen = (row, { c, cp }) => row.name === c && row.prefix === (cp ?? "");
const choice = (row) => ({ c: row.name, cp: row.prefix || null, ct: null });

export function Connectors() {
  const { flow } = route.value.query;
  const answer = useAnswer(`sparkmirror/connectors?${query({ flow })}`, { version: "connectors", every: 1000 });
  return html`<${Loaded} answer=${answer} what="The connectors" heights=${[20, 20, 20, 20]}>${(data) => html`<${Both} data=${data} again=${answer.again} />`}<//>`;
}

function Both({ data, again }) {
  const chosen = route.value.query;
  if (!data.rows.length) return html`<section class="panel empty"><h2>No connector here</h2><p>Connectors are created through REST: <code>PUT /connectors/NAME/config</code></p></section>`;
  const row = data.rows.find((each) => isChosen(each, chosen)) ?? (chosen.c ? null : data.rows.find((each) => each.state === "FAILED" || failedTasks(each).length) ?? data.rows[0]);
  return html`<div class="connectors ${chosen.c ? "chosen" : ""}"><${List} rows=${data.rows} chosen=${row} />
    ${row ? html`<${Detail} key=${row.prefix + row.name} of=${row} who=${data.who} again=${again} />`
      : html`<section class="panel empty"><h2>No connector <code>${chosen.c}</code></h2><p>It was deleted, or belongs to another flow.</p></section>`}</div>`;
}

function List({ rows, chosen }) {
  const flows = [...new Set(rows.map((row) => row.flow))];
  return html`<nav class="panel list" aria-label="Connectors">${flows.map((flow) => html`<div class="group"><h2>${flow ? html`<${FlowName} of=${flow} />` : "other connectors"}</h2>
    ${rows.filter((row) => row.flow === flow).map((row) => html`<a key=${row.prefix + row.name} href=${href("connectors", choice(row))} aria-current=${row === chosen ? "true" : undefined}>
      <span class="mono cut">${row.name}</span><span class="tiny third cut">${summary(row)}</span><${RowState} of=${row} /></a>`)}</div>`)}</nav>`;
}

function RowState({ of }) {
  const failed = failedTasks(of).length;
  return failed && of.state !== "FAILED" ? html`<${State} of="failed" word=${`${plural(failed, "task")} failed`} />` : html`<${State} of=${of.state} />`;
}

function summary(row) {
  if (!row.tasks.length) return `${row.kind}, no tasks`;
  const running = row.tasks.filter((task) => task.state === "RUNNING").length;
  return `${row.kind}, ${running} of ${plural(row.tasks.length, "task")} running`;
}

function Detail({ of, who, again }) {
  const { ct = "tasks" } = route.value.query;
  const failed = failedTasks(of).length;
  const pending = pendingOf(of);
  return html`<section class="panel detail" aria-label=${of.name}>
    <a class="back phone" href=${href("connectors")}>All connectors</a>
    <div class="title"><h2 class="mono">${of.name}</h2>
      ${pending ? html`<${State} of="restarting" word=${pending} />` : failed && of.state !== "FAILED" ? html`<${State} of="failed" word=${`${failed} of ${plural(of.tasks.length, "task")} failed`} />` : html`<${State} of=${of.state} />`}
      <span class="third small">${of.kind} connector on ${of.worker || "no worker"}</span></div>
    <${Actions} of=${of} who=${who} again=${again} />
    <${Tabs} name="ct" label="Details" choices=${[["tasks", "Tasks", of.tasks.length], ["config", "Config"], ["offsets", "Offsets"]]} />
    ${ct === "config" ? html`<${Config} of=${of} />` : ct === "offsets" ? html`<${Offsets} of=${of} who=${who} />` : html`<${Tasks} of=${of} who=${who} again=${again} />`}
  </section>`;
}

function Tasks({ of, who, again }) {
  const troubled = [of, ...of.tasks].filter((each) => each.reason || each.trace);
  return html`<div class="content">${troubled.map((each) => html`<${Trouble} of=${each} />`)}
    ${of.tasks.length ? html`<div class="box scroll" tabindex="0" role="region" aria-label="Tasks"><table><thead><tr><th scope="col" class="num">Task</th><th scope="col">State</th><th scope="col" class="desk">Worker</th>
        <th scope="col" class="num desk wider">Partitions</th><th scope="col" class="num">Behind</th><th scope="col" class="num">Lag, worst</th><th scope="col"><span class="sr">Action</span></th></tr></thead>
      <tbody>${of.tasks.map((task) => html`<tr key=${task.task}><td class="num">${task.task}</td><td><${State} of=${task.state} /></td><td class="second desk nowrap">${task.worker}</td>
        <td class="num desk wider"><${Figure} of=${task} field="partitions" /></td><td class="num"><${Figure} of=${task} field="records_behind" /></td>
        <td class="num">${"seconds_behind" in task.not_applicable ? html`<span class="zero">\u2013</span>` : html`<${Seconds} of=${task.seconds_behind} why=${task.unknown.seconds_behind} />`}</td>
        <td class="num"><${TaskAction} of=${of} task=${task} who=${who} again=${again} /></td></tr>`)}</tbody></table></div>`
      : html`<p class="second"><${Prose} text=${of.note || "No tasks."} /></p>`}
    ${of.note && of.tasks.length ? html`<p class="small second"><${Prose} text=${of.note} /></p>` : ""}
    ${troubled.filter((each) => each.trace).map((each) => html`<div><h3 class="small bold">Trace of ${nameOf(each)}</h3><pre class="trace" tabindex="0" role="region" aria-label=${`Trace of ${nameOf(each)}`}>${each.trace}</pre></div>`)}</div>`;
}

const nameOf = (each) => ("task" in each ? `task ${each.task}` : "the connector");

const Trouble = ({ of }) => html`<div class="message"><${Icon} name=${of.state === "FAILED" ? "bad" : "warn"} tone=${of.state === "FAILED" ? "bad" : "warn"} />
  <div><b>${"task" in of ? `Task ${of.task} ${of.state === "FAILED" ? "failed" : "has a problem"}` : `The connector ${of.state === "FAILED" ? "failed" : "has a problem"}`}</b>
    <div class="why"><${Prose} text=${of.reason || "See its trace."} />${of.remedy ? html` <${Prose} text=${of.remedy.text} />` : ""}</div>
    ${of.remedy?.command ? html`<${Command} of=${of.remedy.command} />` : ""}</div></div>`;

const Figure = ({ of, field }) => (field in of.not_applicable ? html`<span class="zero" title=${of.not_applicable[field]}>\u2013</span>` : html`<${Count} of=${of[field]} why=${of.unknown[field]} />`);

function Config({ of }) {
  const answer = useAnswer(`sparkmirror/connector?${query({ name: of.name, prefix: of.prefix })}`, { version: "connectors" });
  return html`<div class="content">${of.fixed ? html`<p class="small second"><${Prose} text=${of.fixed} /></p>` : ""}
    <${Loaded} answer=${answer} what="The configuration" heights=${[20, 20]}>${(data) => html`
      <div class="box scroll" tabindex="0" role="region" aria-label="Settings"><table class="settings"><thead><tr><th scope="col">Key</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
        <tbody>${data.settings.map((each) => html`<tr key=${each.key}><td><code>${each.key}</code></td><td><code class=${each.origin === "default" ? "second" : ""}>${each.value}</code></td><td class="third small">${each.origin}</td></tr>`)}</tbody></table></div>
      <p class="small third">${exact(data.settings.length)} settings; secrets are hidden.</p>`}<//></div>`;
}
