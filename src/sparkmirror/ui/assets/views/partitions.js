// A table of partitions: in the row of a topic, below a flow, beside a connector.
import { html } from "../core/html.js";
import { exact, known } from "../core/format.js";
import { Count, Seconds, State } from "../parts/words.js";

const SHOWN = 500; // of the worst; more are not read by anyone

export const Partitions = ({ rows, source, label, className = "scroll" }) => html`
  <div class=${className} tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr><th scope="col">State</th><th scope="col">Partition</th><th scope="col" class="num desk">End on ${source}</th><th scope="col" class="num desk">Copied up to</th>
      <th scope="col" class="num">Behind</th><th scope="col" class="num">Lag</th><th scope="col" class="num desk">Task</th></tr></thead>
    <tbody>${rows.slice(0, SHOWN).map((row) => html`<tr key=${`${row.topic}-${row.partition}`}>
      <td><${State} of=${row.state} /></td><td><code>${row.topic}-${row.partition}</code></td>
      <td class="num desk"><${Offset} of=${row} field="end_offset" /></td><td class="num desk"><${Offset} of=${row} field="position" /></td>
      <td class="num"><${Count} of=${row.records_behind} why=${row.unknown.records_behind} /></td>
      <td class="num"><${Seconds} of=${row.seconds_behind} why=${row.unknown.seconds_behind} /></td>
      <td class="num second desk">${known(row.task) ? row.task : "\u2013"}</td></tr>`)}</tbody></table>
    ${rows.length > SHOWN ? html`<p class="none small third">The worst ${exact(SHOWN)} of ${exact(rows.length)} partitions.</p>` : ""}</div>`;

/** An offset, always exact; why it is not known on hover. */
export const Offset = ({ of, field }) =>
  of[field] === null
    ? html`<span class="zero" title=${of.unknown[field] ?? of.not_applicable[field] ?? ""}>${of.not_applicable[field] ? "\u2013" : "unknown"}</span>`
    : exact(of[field]);
