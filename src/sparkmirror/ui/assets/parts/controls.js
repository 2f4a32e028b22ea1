// Filter field, chips, tabs, segments: what chooses the rows of a view. All of it is in the address.
import { html } from "../core/html.js";
import { exact } from "../core/format.js";
import { amend, go, route } from "../core/route.js";
import { Icon } from "./icon.js";

export const Find = ({ label, placeholder = "Filter by name" }) => html`
  <label class="find"><${Icon} name="find" /><span class="sr">${label}</span>
    <input id="find" type="text" placeholder=${placeholder} autocomplete="off" autocapitalize="off" spellcheck=${false}
      value=${route.value.query.q ?? ""} onInput=${(event) => amend({ q: event.target.value, open: null })} /><kbd aria-hidden="true">/</kbd></label>`;

/** Choices are [value, label, count, icon, tone]; the first is the default. */
export const Chips = ({ name = "state", label, choices }) => {
  const chosen = route.value.query[name] ?? choices[0][0];
  return html`<div class="chips" role="group" aria-label=${label}>${choices.map(([value, text, count, icon, tone]) => html`
    <button class="chip" type="button" aria-pressed=${String(chosen === value)}
      onClick=${() => go({ [name]: value === choices[0][0] ? null : value, open: null })}>
      ${icon && count ? html`<${Icon} name=${icon} tone=${tone} />` : ""}${text}${count === undefined ? "" : html` <b>${exact(count)}</b>`}</button>`)}</div>`;
};

export const Tabs = ({ name, label, choices, reset = {} }) => {
  const chosen = route.value.query[name] ?? choices[0][0];
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...event.currentTarget.querySelectorAll("[role=tab]")];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>${choices.map(([value, text, count]) => html`
    <button type="button" role="tab" aria-selected=${String(chosen === value)} tabindex=${chosen === value ? 0 : -1}
      onClick=${() => go({ ...reset, [name]: value === choices[0][0] ? null : value })}>${text}${
        count === undefined ? "" : html` <b>${exact(count)}</b>`}</button>`)}</div>`;
};

export const Segments = ({ label, choices, chosen, onChoose }) => html`
  <div class="segments" role="group" aria-label=${label}>${choices.map(([value, text]) => html`
    <button type="button" aria-pressed=${String(chosen === value)} onClick=${() => onChoose(value)}>${text}</button>`)}</div>`;

/** Up to five figures in a row: [label, value, note]. */
export const Figures = ({ of, panel = true }) => html`
  <dl class="figures ${panel ? "panel" : ""} of-${of.length}">${of.map(([label, value, note]) => html`
    <div class="figure"><dt>${label}</dt><dd class="value">${value}</dd><dd class="note">${note}</dd></div>`)}</dl>`;
