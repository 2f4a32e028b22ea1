// Overview: is everything all right? If not: what, since when, when does loss begin, what to do.
import { html } from "../core/html.js";
import { exact, known, megabytes, short } from "../core/format.js";
import { flowLink } from "../core/links.js";
import { href, route } from "../core/route.js";
import { Figures } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Spark } from "../parts/spark.js";
import { FlowName, Prose, Quantity, Seconds, State, spoken } from "../parts/words.js";
import { EventRow } from "./event_row.js";
import { Topology } from "./topology.js";
import { Verdict, levelIcon, levelTone } from "./verdict.js";

const MUCH = 20; // percent of what waits, in one partition
const QUIET_SECONDS = 5; // below, lag is a flat line: its ups and downs mean nothing

export function Overview({ data }) {
  const { flow } = route.value.query;
  const flows = data.flows.filter((each) => !flow || each.flow === flow);
  return html`<${Verdict} data=${data} />
    <${Figures} of=${figures(data, flow)} />
    <div class="two">
      <${Topology} data=${data} />
      <section class="panel flows"><div class="head"><h2>Flows, last hour</h2></div>
        ${flows.map((each) => html`<${FlowPanel} key=${each.flow} of=${each} spark=${data.sparks[each.flow]} />`)}</section>
    </div>
    <section class="panel last"><div class="head"><h2>Last events</h2><a class="grow small" href=${href("events")}>All events</a></div>
      <ol class="events">${data.events.map((event) => html`<${EventRow} key=${event.id} of=${event} at=${data.now_ms} />`)}</ol>
      ${data.events.length ? "" : html`<p class="none second">Nothing has happened since the workers started.</p>`}</section>`;
}

function figures(data, flow) {
  const one = flow && data.flows.find((each) => each.flow === flow);
  const of = one || data;
  const { worst } = of;
  const readiness = data.failover.find((each) => each.flow === flow) ?? worstOf(data.failover);
  return [
    ["Worst lag", worst ? html`<${Seconds} of=${worst.seconds_behind} why=${of.unknown?.seconds_behind} />` : "\u2013",
      worst ? html`<span class="mono">${worst.topic}-${worst.partition}</span>, ${worst.flow.replace("->", " to ")}` : "nothing is copied yet"],
    ["Throughput", known(of.bytes_per_second) ? html`<${Quantity} of=${[[megabytes(of.bytes_per_second), "MB/s"]]} />` : "unknown",
      known(of.records_per_second) ? `${exact(of.records_per_second)} records/s` : of.unknown?.records_per_second ?? ""],
    ["Waiting to be copied", known(of.records_behind) ? html`<span title=${exact(of.records_behind)}><${Quantity} of=${[[short(of.records_behind), "records"]]} /></span>` : "unknown", waiting(of)],
    readiness ? [`Failover of ${readiness.flow.replace("->", " to ")}, now`,
      html`<a class="answer-link" href=${href("failover", { flow: readiness.flow })}><${Icon} name=${levelIcon(readiness.level)} tone=${levelTone(readiness.level)} />${readiness.head}</a>`, html`<${Prose} text=${readiness.text} />`]
      : ["Failover, now", "\u2013", "no flow"],
  ];
}

const RANK = ["bad", "unknown", "warn", "info", "ok"];
const worstOf = (all) => [...all].sort((a, b) => RANK.indexOf(a.level) - RANK.indexOf(b.level))[0];

function waiting(of) {
  const { worst, records_behind: all } = of;
  const share = Math.round((100 * (worst?.records_behind ?? 0)) / all);
  if (!known(all)) return of.unknown?.records_behind ?? "";
  if (!all) return "everything is copied";
  if (share >= MUCH) return `${share} % of them in 1 partition`;
  return worst?.seconds_behind > QUIET_SECONDS ? "in many partitions" : "on the way";
}

function FlowPanel({ of, spark }) {
  const lag = known(of.seconds_behind) ? spoken(of.seconds_behind) : "unknown";
  return html`<a class="flow" href=${flowLink(of.flow)}>
    <div class="name"><b><${FlowName} of=${of.flow} /></b><${State} of=${of.state} word=${of.word} /></div>
    <div class="pair">
      <div><div class="key"><span>Copied</span><b><${Quantity} of=${[[megabytes(of.bytes_per_second ?? 0), "MB/s"]]} /></b></div>
        ${spark ? html`<${Spark} values=${spark.bytes_per_second} label=${`Copied in the last hour, now ${megabytes(of.bytes_per_second ?? 0)} MB/s`} />` : ""}</div>
      <div><div class="key"><span>Lag, worst partition</span><b><${Seconds} of=${of.seconds_behind} why=${of.unknown.seconds_behind} /></b></div>
        ${spark ? html`<${Spark} values=${spark.seconds_behind} least=${QUIET_SECONDS} label=${`Lag in the last hour, now ${lag}`} />` : ""}</div>
    </div></a>`;
}

