// One event: when, what, which flow, and whether it is over.
import { html } from "../core/html.js";
import { duration, exact, known, plain, second } from "../core/format.js";
import { linkTo } from "../core/links.js";
import { Icon } from "../parts/icon.js";
import { FlowName, Prose } from "../parts/words.js";
import { levelIcon, levelTone } from "./verdict.js";

/** `place`: "cause" of what follows, "effect" under its cause, "last" of its effects, or "" alone. */
export const EventRow = ({ of, at, place = "" }) => html`<li class="event ${place}">
  <time class="tabular second" datetime=${new Date(of.time_ms).toISOString()}>${second(of.time_ms)}</time>
  <${Icon} name=${of.level === "info" ? "info" : levelIcon(of.level)} tone=${of.level === "info" ? "mute" : levelTone(of.level)} />
  <${What} of=${of} />
  <span class="where small second">${of.flow ? html`<${FlowName} of=${of.flow} />` : of.cluster || "workers"}</span>
  <span class="length small ${isOngoing(of) ? "bold" : "third"}">${lengthOf(of, at)}</span></li>`;

function What({ of }) {
  const [what, why] = whatAndWhy(of.text);
  const reason = [why, of.user && `by ${of.user}`, of.count > 1 && `${exact(of.count)} times`].filter(Boolean).join("; ");
  return html`<div class="text"><div>${of.link ? html`<a href=${linkTo(of.link)}><${Prose} text=${what} /></a>` : html`<${Prose} text=${what} />`}</div>
    ${reason ? html`<div class="below"><${Prose} text=${reason} /></div>` : ""}</div>`;
}

/** "a broker is unreachable: connection refused" in two lines; no colon inside of a name divides it. */
export function whatAndWhy(text) {
  const at = text.indexOf(": ");
  const isInName = text.slice(0, at).split("`").length % 2 === 0;
  const [what, why] = at < 0 || isInName ? [text, ""] : [text.slice(0, at), text.slice(at + 2)];
  return [what[0] === what[0]?.toLowerCase() ? what.slice(0, 1).toUpperCase() + what.slice(1) : what, why];
}

const isOngoing = (of) => of.lasts && !known(of.ended_ms);

function lengthOf(of, at) {
  if (known(of.ended_ms)) return `over after ${plain(duration(Math.max(0, of.ended_ms - of.time_ms) / 1000))}`;
  if (of.lasts) return `ongoing, ${plain(duration(Math.max(0, at - of.time_ms) / 1000))}`;
  return "";
}
