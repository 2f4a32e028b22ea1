// A chart over time, drawn by uPlot. All charts of a view share one crosshair; what it points at is
// written into the legend, so nothing floats over the data. A gap stays a gap.
import { html } from "../core/html.js";
import { minute, second } from "../core/format.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { Quantity } from "./words.js";
import { shade } from "./chart_marks.js";

const HEIGHT = 178;
let loading = null;

/** uPlot is a third of the page's code: it is loaded when the first chart is drawn. */
function library() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("../vendor/uplot.js", import.meta.url).href;
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => { loading = null; reject(new Error("uplot.js could not be loaded")); };
    document.head.append(script);
  });
  return loading;
}

const TABLE_ROWS = 40;
const FONT = "12px Inter, system-ui, sans-serif";
const STEPS = { time: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400] };

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Axis steps that give 3 to 4 lines; lag counts in s, min and h. */
export function stepFor(top, kind) {
  const least = top / 4;
  if (kind === "time") {
    const found = STEPS.time.find((step) => step >= least);
    if (found && top >= 1) return found;
  }
  const size = 10 ** Math.floor(Math.log10(least || 1));
  return [1, 2, 2.5, 5, 10].map((times) => times * size).find((step) => step >= least * 0.999);
}

/** `latest()` is what the chart shows now: new data does not make a new chart. */
function options(latest, width) {
  const { series, kind, axis, sync, onPoint, label } = latest();
  const grid = { stroke: colour("grid"), width: 1 };
  const axes = { stroke: colour("text-3"), font: FONT, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [18, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: sync, setSeries: false }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: {
      x: { time: true, range: () => latest().range },
      y: { range: (_, __, max) => { const step = stepFor(max || 1, kind); return [0, step * Math.max(1, Math.ceil((max || 1) / step - 1e-9))]; } },
    },
    axes: [
      { ...axes, grid: { show: false }, space: 74, size: 26, gap: 6, values: (_, ticks) => ticks.map((at) => minute(at * 1000)) },
      { ...axes, grid, size: 58, gap: 8, splits: (_, __, low, high) => { const step = stepFor(high, kind); return Array.from({ length: Math.round(high / step) + 1 }, (___, i) => low + i * step); }, values: (_, ticks) => ticks.map(axis) },
    ],
    series: [{}, ...series.map((each) => ({
      label: each.name, stroke: colour(each.colour), width: each.dash ? 1.5 : 1.7, dash: each.dash,
      fill: each.fill ? colour("fill") : undefined, points: { show: false }, spanGaps: false,
    }))],
    hooks: {
      drawClear: [(plot) => shade.gaps(plot, latest().gaps, colour, label)],
      draw: [(plot) => { shade.marks(plot, latest().marks, colour); shade.forecast(plot, latest().forecast, colour); }],
      setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)],
    },
  };
}

/** series: [{ name, values, colour, dash, fill }]; show(value): a quantity; axis(value): an axis label. */
export function Chart({ title, unit, times, series, marks = [], gaps = [], forecast = null, kind, axis, show, sync, sentence, range, noData = "no data" }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [point, setPoint] = useState(null);
  const [asTable, setAsTable] = useState(false);
  const data = [times.map((ms) => ms / 1000), ...series.map((each) => each.values)];
  const shape = `${series.map((each) => each.name)} ${asTable}`;
  const fresh = useRef(null);
  fresh.current = { data, series, marks, gaps, forecast, kind, axis, sync, onPoint: setPoint, label: noData, range };

  useEffect(() => {
    if (asTable) return undefined;
    let isGone = false;
    const draw = async () => {
      const Plot = await library();
      if (isGone || !place.current) return;
      plot.current?.destroy();
      plot.current = new Plot(options(() => fresh.current, place.current.clientWidth), fresh.current.data, place.current);
    };
    draw();
    const watcher = new ResizeObserver(() => { if (place.current) plot.current?.setSize({ width: place.current.clientWidth, height: HEIGHT }); });
    watcher.observe(place.current);
    addEventListener("theme", draw);
    return () => {
      isGone = true;
      watcher.disconnect();
      removeEventListener("theme", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => { plot.current?.setData(data); }, [times, forecast?.to_ms]);

  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !plot.current) return;
    event.preventDefault();
    const at = Math.max(0, Math.min(times.length - 1, (point ?? times.length - 1) + step));
    plot.current.setCursor({ left: plot.current.valToPos(times[at] / 1000, "x"), top: 10 });
  };
  const at = point ?? lastIndex(series[0].values);
  return html`<section class="panel chart-panel">
    <div class="chart-head"><h2>${title}${unit ? html` <span>${unit}</span>` : ""}</h2>
      <div class="legend">${point !== null ? html`<span class="tabular">${second(times[at])}</span>` : ""}${series.map((each) => html`
        <span><${Swatch} of=${each} />${each.name} <b>${value(each.values[at], show)}</b></span>`)}
        <button class="plain" type="button" aria-pressed=${String(asTable)} aria-label=${`${title} as ${asTable ? "chart" : "table"}`} onClick=${() => setAsTable(!asTable)}>${asTable ? "as chart" : "as table"}</button></div></div>
    ${asTable ? html`<${Readings} times=${times} series=${series} show=${show} title=${title} />`
      : html`<div class="chart" ref=${place} tabindex="0" role="img" aria-label=${`${title}: ${sentence}. Arrow keys read single times.`} onKeyDown=${onKey}
          onBlur=${() => plot.current?.setCursor({ left: -10, top: -10 })} />`}
  </section>`;
}

const value = (number, show) => (number === null || number === undefined ? "\u2013" : html`<${Quantity} of=${show(number)} />`);
const lastIndex = (values) => values.reduce((last, each, i) => (each === null ? last : i), 0);

const Swatch = ({ of }) => html`<svg class="swatch" viewBox="0 0 18 8" aria-hidden="true">
  <path d="M0 4h18" stroke=${`var(--${of.colour})`} stroke-width="2" stroke-dasharray=${of.dash ? of.dash.join(" ") : undefined} /></svg>`;

function Readings({ times, series, show, title }) {
  const every = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
  const rows = times.map((_, i) => i).filter((i) => (times.length - 1 - i) % every === 0).reverse();
  return html`<div class="inner readings" tabindex="0" role="region" aria-label=${`${title} as table`}><table>
    <thead><tr><th scope="col">Time</th>${series.map((each) => html`<th scope="col" class="num">${each.name}</th>`)}</tr></thead>
    <tbody>${rows.map((i) => html`<tr><td class="tabular">${second(times[i])}</td>${series.map((each) => html`<td class="num">${value(each.values[i], show)}</td>`)}</tr>`)}</tbody></table></div>`;
}
