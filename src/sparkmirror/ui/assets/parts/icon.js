// Every icon stands beside its word: shapes differ, so colour is never alone.
import { html } from "../core/html.js";

const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" };
const on = { stroke: "var(--surface)", "stroke-width": 1.7, "stroke-linecap": "round" };
const ring = () => html`<circle cx="8" cy="8" r="6.6" ...${line} />`;
const stroke = (d) => html`<path d=${d} ...${line} />`;

const SHAPES = {
  ok: () => [ring(), stroke("M5 8.2l2.1 2.1L11 6.2")],
  idle: () => [ring(), stroke("M5.2 8h5.6")],
  paused: () => [ring(), stroke("M6.3 5.7v4.6M9.7 5.7v4.6")],
  info: () => [ring(), stroke("M8 7.3v4M8 4.7v.2")],
  part: () => [ring(), html`<path d="M8 3.2a4.8 4.8 0 0 1 0 9.6z" fill="currentColor" />`],
  unknown: () => [
    html`<circle cx="8" cy="8" r="6.6" ...${line} stroke-dasharray="2.6 2" />`,
    stroke("M6.2 6.3C6.3 5.2 7 4.7 8 4.7s1.8.6 1.8 1.6c0 1.3-1.8 1.4-1.8 2.7M8 11.3v.1"),
  ],
  catching: () => stroke("M3.5 8.5 8 4l4.5 4.5M3.5 13 8 8.5l4.5 4.5"),
  warn: () => [
    html`<path d="M8 1.6 15.2 14H.8z" fill="currentColor" stroke="currentColor" stroke-linejoin="round" />`,
    html`<path d="M8 6v4M8 12v.2" ...${on} />`,
  ],
  bad: () => [
    html`<path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" fill="currentColor" />`,
    html`<path d="M5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8" ...${on} />`,
  ],
  chevron: () => stroke("M6 3.5 10.5 8 6 12.5"),
  find: () => [html`<circle cx="7" cy="7" r="4.6" ...${line} />`, stroke("m10.5 10.5 3.5 3.5")],
  dot: () => html`<circle cx="8" cy="8" r="4" fill="currentColor" />`,
  point: () => html`<circle cx="8" cy="8" r="2" fill="currentColor" />`,
  overview: () => stroke("M2 8l6-5.8 6 5.8v5.8h-3.6v-3.6H5.6v3.6H2z"),
  topics: () => stroke("M2.5 3.5h11M2.5 8h11M2.5 12.5h7"),
  groups: () => [html`<circle cx="6" cy="5.5" r="2.5" ...${line} />`, stroke("M1.5 13.5c0-2.8 1.8-4 4.5-4s4.5 1.2 4.5 4M11 3.6a2.5 2.5 0 0 1 0 3.8M12.5 9.8c1.5.5 2 1.7 2 3.5")],
  failover: () => stroke("M2.5 5h9L9 2.5M13.5 11h-9L7 13.5"),
  more: () => [3, 8, 13].map((x) => html`<circle cx=${x} cy="8" r="1.3" fill="currentColor" />`),
};

export const Icon = ({ name, tone = "" }) => html`
  <svg class="icon ${tone}" viewBox="0 0 16 16" aria-hidden="true">${SHAPES[name]()}</svg>`;

export const Arrow = () => html`
  <svg class="arrow" viewBox="0 0 14 10" role="img" aria-label="to">
    <path d="M0 5h12M8.5 1.5 12.3 5 8.5 8.5" ...${line} stroke-width="1.4" /></svg>`;

export const Mark = () => html`
  <svg viewBox="0 0 20 20" aria-hidden="true">
    <path d="M8.5 2v16L1.5 10z" fill="var(--accent)" />
    <path d="M11.5 2v16l7-8z" fill="none" stroke="var(--accent)" stroke-width="1.6" stroke-linejoin="round" /></svg>`;
