// A small line of the last hour: from 0, gaps stay gaps. Its numbers stand beside it as text.
import { html } from "../core/html.js";

const HIGH = 46;
const WIDE = 240;

/** `least`: the value that the top stands for at least. */
export function Spark({ values, label, least = 1e-9 }) {
  const top = Math.max(least, ...values.filter((value) => value !== null)) * 1.08;
  const x = (i) => (values.length > 1 ? (i / (values.length - 1)) * WIDE : WIDE);
  const y = (value) => HIGH - 1 - (value / top) * (HIGH - 4);
  const runs = runsOf(values);
  const line = runs.map((run) => `M${run.map(([i, value]) => `${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`);
  const area = runs.map((run, i) => `${line[i]}L${x(run.at(-1)[0]).toFixed(1)} ${HIGH}L${x(run[0][0]).toFixed(1)} ${HIGH}Z`);
  const gaps = values.flatMap((value, i) => (value === null ? [i] : []));
  return html`<svg class="spark" viewBox="0 0 ${WIDE} ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${label}>
    ${gaps.map((i) => html`<rect x=${x(Math.max(0, i - 1))} y="0" width=${x(1) * 2} height=${HIGH} fill="var(--sunken)" />`)}
    <path d=${area.join("")} fill="var(--fill)" />
    <path d=${`M0 ${HIGH - 0.5}H${WIDE}`} stroke="var(--line-2)" vector-effect="non-scaling-stroke" />
    <path d=${line.join("")} fill="none" stroke="var(--data-1)" stroke-width="1.5" vector-effect="non-scaling-stroke" stroke-linejoin="round" /></svg>`;
}

/** [[index, value], ...] without the nulls, one list for each stretch. */
export function runsOf(values) {
  const runs = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || values[i - 1] === null) runs.push([]);
    runs.at(-1).push([i, value]);
  });
  return runs;
}
