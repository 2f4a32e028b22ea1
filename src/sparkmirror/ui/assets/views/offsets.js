// Offsets of a connector: seen always, changed only while it is stopped, and never without the difference shown first.
import { html } from "../core/html.js";
import { exact, plural } from "../core/format.js";
import { ask as request } from "../core/api.js";
import { useAnswer } from "../core/answer.js";
import { useState } from "../vendor/hooks.js";
import { ask } from "../parts/dialog.js";
import { Loaded } from "../parts/request.js";
import { urlOf } from "./actions.js";

const SHOWN = 300; // rows; the filter finds the others
const NUMBER = /^\d{1,18}$/;

export function Offsets({ of, who }) {
  const answer = useAnswer(urlOf(of, "/offsets"), { version: "connectors", every: 5000 });
  const [edited, setEdited] = useState({});
  const [filter, setFilter] = useState("");
  const editable = of.state === "STOPPED" && who.role === "operator";
  const why = of.state === "STOPPED" ? "" : who.role === "operator" ? "Offsets can be changed while the connector is stopped. Stop it first; the page then shows what would change before anything is written." : "";
  return html`<div class="content edit"><${Loaded} answer=${answer} what="The offsets" heights=${[20, 20]}>${(data) => {
    const rows = data.offsets.map((each) => ({ ...each, name: nameOf(each.partition), key: JSON.stringify(each.partition) }));
    const seen = rows.filter((row) => row.name.includes(filter));
    const changes = rows.filter((row) => row.key in edited && edited[row.key] !== valueOf(row));
    const wrong = changes.filter((row) => edited[row.key] !== "" && !NUMBER.test(edited[row.key]));
    const done = () => { setEdited({}); answer.again(); };
    return html`${why ? html`<p class="second small">${why}</p>` : ""}
      ${rows.length > 20 ? html`<label class="small second">Filter <input class="little" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>` : ""}
      ${rows.length ? html`<div class="box scroll" tabindex="0" role="region" aria-label="Offsets"><table><thead><tr><th scope="col">Partition</th><th scope="col" class="num">Offset</th></tr></thead>
        <tbody>${seen.slice(0, SHOWN).map((row) => html`<tr key=${row.key}><td><code>${row.name}</code></td><td class="num">${editable
          ? html`<input class="little num" inputmode="numeric" aria-label=${`Offset of ${row.name}`} aria-invalid=${String(wrong.includes(row))} value=${edited[row.key] ?? valueOf(row)} onInput=${(event) => setEdited({ ...edited, [row.key]: event.target.value.trim() })} />`
          : html`<span class="tabular">${shown(row)}</span>`}</td></tr>`)}</tbody></table></div>` : html`<p class="second">It has stored no offsets yet.</p>`}
      ${seen.length > SHOWN ? html`<p class="small third">The first ${exact(SHOWN)} of ${exact(seen.length)}: filter for the others.</p>` : ""}
      ${editable ? html`<div class="actions"><button class="button main" type="button" disabled=${!changes.length || wrong.length > 0} onClick=${() => review(of, changes, edited, done)}>Review ${changes.length ? plural(changes.length, "change") : "changes"}\u2026</button>
        <button class="button" type="button" disabled=${!changes.length} onClick=${() => setEdited({})}>Undo</button>
        <button class="button" type="button" disabled=${!rows.length} onClick=${() => reset(of, rows.length, done)}>Reset all\u2026</button>
        ${wrong.length ? html`<span class="bad small">${wrong[0].name}: an offset is a whole number, or empty.</span>` : ""}</div>
        <p class="small third">An offset is that of the last record copied. An empty field removes it: the partition then starts as a new one does.</p>` : ""}`;
  }}<//></div>`;
}

/** topic-partition where the partition has both, else its fields. */
function nameOf(partition) {
  const { topic, partition: number } = partition;
  if (topic !== undefined && number !== undefined) return `${partition.group ? `${partition.group}: ` : ""}${topic}-${number}`;
  return Object.entries(partition).map(([key, value]) => `${key}=${value}`).join(", ");
}

const valueOf = (row) => String(row.offset?.offset ?? "");
const shown = (row) => (row.offset?.offset === undefined ? JSON.stringify(row.offset) : exact(row.offset.offset));

function review(of, changes, edited, done) {
  const back = changes.filter((row) => edited[row.key] !== "" && Number(edited[row.key]) < Number(valueOf(row)));
  const ahead = changes.filter((row) => edited[row.key] !== "" && Number(edited[row.key]) > Number(valueOf(row)));
  const points = [
    ...(back.length ? [["warn", `${plural(back.length, "partition")} would go back: their records are copied a second time.`]] : []),
    ...(ahead.length ? [["bad", `${plural(ahead.length, "partition")} would go ahead: the records in between are never copied.`]] : []),
    ["info", "The change takes effect when the connector is resumed."],
  ];
  const table = html`<div class="inner" tabindex="0" role="region" aria-label="Changes"><table><thead><tr><th scope="col">Partition</th><th scope="col" class="num">Now</th><th scope="col" class="num">Then</th><th scope="col" class="num">Difference</th></tr></thead>
    <tbody>${changes.map((row) => html`<tr><td><code>${row.name}</code></td><td class="num">${shown(row)}</td><td class="num">${edited[row.key] === "" ? "removed" : exact(Number(edited[row.key]))}</td>
      <td class="num">${edited[row.key] === "" ? "\u2013" : signed(Number(edited[row.key]) - Number(valueOf(row)))}</td></tr>`)}</tbody></table></div>`;
  ask({
    title: `Change ${plural(changes.length, "offset")} of ${of.name}?`, points, body: table, wide: true, word: "Write offsets", danger: true, typed: of.name,
    act: async () => {
      const offsets = changes.map((row) => ({ partition: row.partition, offset: edited[row.key] === "" ? null : { offset: Number(edited[row.key]) } }));
      await request(urlOf(of, "/offsets"), { method: "PATCH", body: { offsets } });
      done();
    },
  });
}

function reset(of, count, done) {
  ask({
    title: `Reset all ${exact(count)} offsets of ${of.name}?`,
    points: [["bad", "Every partition starts as a new one does: with the default settings from the earliest record, so all is copied a second time."], ["info", "The change takes effect when the connector is resumed."]],
    word: "Reset offsets", danger: true, typed: of.name,
    act: async () => {
      await request(urlOf(of, "/offsets"), { method: "DELETE" });
      done();
    },
  });
}

const signed = (value) => `${value > 0 ? "+" : ""}${exact(value)}`;
