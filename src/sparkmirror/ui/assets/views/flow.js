// Flow: does this flow keep up, and when is it caught up?
import { html } from "../core/html.js";
import { duration, exact, known, megabytes, milliseconds, minute, moment, plain, rounded, short } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { query } from "../core/pages.js";
import { go, route } from "../core/route.js";
import { Chart } from "../parts/chart.js";
import { Figures, Segments } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Loaded } from "../parts/request.js";
import { Prose, Quantity, Seconds, spoken } from "../parts/words.js";
import { Partitions } from "./partitions.js";
import { levelIcon, levelTone } from "./verdict.js";

const RANGES = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"]];
const SPAN_MS = { "15m": 900e3, "1h": 3600e3, "6h": 21600e3, "24h": 86400e3 };
const HISTORY_MS = 15000;

export const Ranges = () => html`<${Segments} label="Time range" choices=${RANGES} chosen=${route.value.query.range ?? "1h"}
  onChoose=${(range) => go({ range: range === "1h" ? null : range })} />`;

export function Flow({ flow }) {
  const range = route.value.query.range ?? "1h";
  const answer = useAnswer(`sparkmirror/flow?${query({ flow })}`, { every: 2000 });
  const history = useAnswer(`sparkmirror/history?${query({ flow, range })}`, { every: HISTORY_MS });
  return html`<div class="phone-ranges"><${Ranges} /></div>
    <${Loaded} answer=${answer} what="The flow" heights=${[30, 18, 90]}>${(data) => html`
      <section class="panel verdict low"><div class="said"><${Icon} name=${levelIcon(data.flow.sentence.level)} tone=${levelTone(data.flow.sentence.level)} />
        <h2>${data.flow.sentence.head}</h2><p><${Prose} text=${data.flow.sentence.text} /></p></div></section>
      <${Figures} of=${figures(data.flow, data.now_ms)} />`}<//>
    <${Loaded} answer=${history} what="The history" heights=${[178, 178]}>${(past) => html`
      <${Charts} past=${past} span=${SPAN_MS[range]} flow=${answer.data?.flow} />`}<//>
    ${answer.data ? html`<section class="panel"><div class="head"><h2>Slowest partitions now</h2></div>
      <${Partitions} rows=${answer.data.slowest.slice(0, 5)} source=${answer.data.flow.source} label="Slowest partitions" /></section>` : ""}`;
}

function figures(of, at) {
  const { latency, worst } = of;
  return [
    ["Copied", known(of.bytes_per_second) ? html`<${Quantity} of=${[[megabytes(of.bytes_per_second), "MB/s"]]} />` : "unknown",
      known(of.records_per_second) ? `${exact(of.records_per_second)} records/s` : of.unknown.records_per_second ?? ""],
    ["Lag, worst partition", html`<${Seconds} of=${of.seconds_behind} why=${of.unknown.seconds_behind} />`,
      known(of.others_seconds_behind) && of.seconds_behind - of.others_seconds_behind > 1 ? `all others ${spoken(of.others_seconds_behind)}` : "oldest record not yet copied"],
    ["Waiting", known(of.records_behind) ? html`<span title=${exact(of.records_behind)}><${Quantity} of=${[[short(of.records_behind), "records"]]} /></span>` : "unknown",
      worst?.records_behind > of.records_behind / 2 ? html`in <span class="mono">${worst.topic}-${worst.partition}</span>: ${exact(worst.records_behind)}` : `in ${exact(of.partitions.total)} partitions`],
    ["Latency, append to ack", known(latency?.p50_ms) ? html`<${Quantity} of=${[[milliseconds(latency.p50_ms), "ms p50"]]} />` : "\u2013",
      known(latency?.p99_ms) ? `p99 ${milliseconds(latency.p99_ms)} ms, max ${milliseconds(latency.max_ms)} ms` : of.not_applicable.latency ?? of.unknown.latency ?? "nothing copied"],
    ["Catch-up", ...catchUp(of.catch_up, at)],
  ];
}

function catchUp(state, at) {
  switch (state.state) {
    case "done": return ["Done", known(state.since_ms) ? `since ${moment(state.since_ms, at)}` : state.text];
    case "about": return [html`<span class="unit">about </span><${Quantity} of=${duration(state.seconds)} />`, `at ${moment(state.at_ms, at)}`];
    case "waiting": return ["Waiting", state.text];
    case "not by itself": return ["Not by itself", known(state.change_per_second) ? `grows by ${exact(Math.abs(state.change_per_second))} records/s` : state.text];
    default: return ["unknown", state.text];
  }
}

function Charts({ past, span, flow }) {
  const { series, times_ms: times } = past;
  const ahead = forecast(flow, past);
  const end = Math.max(past.now_ms, ahead ? Math.min(ahead.to_ms + span / 6, past.now_ms + span / 2) : 0) / 1000;
  const common = { times, gaps: past.gaps, marks: past.marks, sync: "flow", range: [(past.now_ms - span) / 1000, end] };
  const seconds = (value) => (value < 1 ? `${value}` : plain(duration(value)));
  const last = (values) => values.findLast((value) => value !== null);
  const say = (values, show) => (known(last(values)) ? `now ${plain(show(last(values)))}, at most ${plain(show(Math.max(...values.filter(known))))}` : "nothing recorded");
  const rate = (value) => [[megabytes(value * 1e6), ""]];
  const mega = (values) => values.map((value) => (value === null ? null : value / 1e6));
  const ms = (value) => [[milliseconds(value), ""]];
  const records = (value) => [[exact(value), ""]];
  return html`<div class="charts">
    <${Chart} ...${common} title="Throughput" unit="MB/s" show=${rate} axis=${(value) => (value < 1 && value ? value.toFixed(2) : exact(value))} sentence=${say(mega(series.bytes_per_second), rate)}
      series=${[{ name: "copied", values: mega(series.bytes_per_second), colour: "data-1", fill: true }, { name: `written${flow ? ` on ${flow.source}` : ""}`, values: mega(series.written_bytes_per_second), colour: "data-2", dash: [4, 3] }]} />
    <${Chart} ...${common} title="Lag" kind="time" show=${duration} axis=${seconds} sentence=${say(series.seconds_behind, duration)}
      series=${[{ name: "worst partition", values: series.seconds_behind, colour: "data-1" }, { name: "all others", values: series.others_seconds_behind, colour: "data-2", dash: [4, 3] }]} />
    <${Chart} ...${common} title="Latency" unit="ms, append to ack" show=${ms} axis=${exact} sentence=${say(series.latency_p50_ms, ms)}
      series=${[{ name: "p50", values: series.latency_p50_ms, colour: "data-1" }, { name: "p99", values: series.latency_p99_ms, colour: "data-3", dash: [5, 3] }]} />
    <${Chart} ...${common} title="Waiting" unit=${ahead ? "records, with forecast" : "records"} show=${records} axis=${rounded} forecast=${ahead} sentence=${say(series.records_behind, records)}
      series=${[{ name: "records behind", values: series.records_behind, colour: "data-1", fill: true }]} />
  </div>`;
}

/** From the newest value to 0, when the worker gives an estimate. */
function forecast(flow, past) {
  const state = flow?.catch_up;
  if (state?.state !== "about" || !known(state.at_ms)) return null;
  const values = past.series.records_behind;
  const i = values.findLastIndex((value) => value !== null);
  return i < 0 ? null : { from_ms: past.times_ms[i], value: values[i], to_ms: state.at_ms, text: `0 at ${minute(state.at_ms)}` };
}
