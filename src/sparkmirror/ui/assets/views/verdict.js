// The first panel: is everything all right, and if not: what, since when, when does loss begin, what to do.
import { signal } from "../vendor/signals-core.js";
import { html } from "../core/html.js";
import { about, duration, exact, known, moment, second, zone } from "../core/format.js";
import { isLive } from "../core/live.js";
import { linkTo } from "../core/links.js";
import { Icon } from "../parts/icon.js";
import { Spoken } from "../parts/spoken.js";
import { Prose, Quantity } from "../parts/words.js";

const DAY = 86400;
const NOT_BY_RETENTION = "not by retention";
const ACKNOWLEDGED = "sparkmirror.acknowledged";
const LEVELS = { ok: "ok", info: "catching", warn: "warn", bad: "bad", unknown: "unknown" };
export const levelIcon = (level) => LEVELS[level] ?? "info";
export const levelTone = (level) => ({ ok: "ok", info: "info", warn: "warn", bad: "bad" })[level] ?? "mute";

const acknowledged = signal(new Set(stored()));
function stored() {
  try {
    return JSON.parse(localStorage.getItem(ACKNOWLEDGED) ?? "[]");
  } catch {
    return [];
  }
}
function acknowledge(id) {
  acknowledged.value = new Set([...acknowledged.value, id]);
  try {
    localStorage.setItem(ACKNOWLEDGED, JSON.stringify([...acknowledged.value].slice(-200)));
  } catch {
    // Without storage it is acknowledged for this visit.
  }
}

/** Losses stay until somebody says that they have read them. */
export const openProblems = (data) =>
  data.problems.filter((each) => each.code !== "lost" || !acknowledged.value.has(each.id));

/** The sentence; without a stream in the past tense, because nothing is known about now. */
export function sentence(data) {
  const problems = openProblems(data);
  let { head, text, level, code } = data.verdict;
  if (code === "lost" && !problems.some((each) => each.code === "lost")) {
    code = problems.length ? "problems" : "ok";
    level = problems.length ? problems[0].level : "ok";
    head = problems.length ? `${things(problems.length)} ${problems.length === 1 ? "needs" : "need"} you.` : "Everything is all right";
    text = `The losses that you acknowledged are under Events. ${text}`;
  }
  if (isLive.value) return { head, text, level };
  const past = {
    problems: `${things(problems.length)} needed you`,
    ok: "everything was all right",
    "catching up": "it was catching up",
    lost: "records had been lost",
  }[code];
  const at = `${second(data.now_ms)} ${zone()}`;
  return { head: past ? `At ${at}, ${past}` : `At ${at}: ${head}`, text, level };
}
const things = (count) => `${exact(count)} ${count === 1 ? "thing" : "things"}`;

export function Verdict({ data }) {
  const said = sentence(data);
  return html`<section class="panel verdict">
    <${Spoken} text=${said.head} /><div class="said"><${Icon} name=${levelIcon(said.level)} tone=${levelTone(said.level)} /><h2>${said.head}</h2><p><${Prose} text=${said.text} /></p></div>
    ${openProblems(data).map((problem) => html`<${Problem} key=${problem.id} of=${problem} at=${data.now_ms} />`)}
    ${data.notes.length ? html`<p class="also">Also: ${data.notes.map((note, i) => html`${i ? ", " : ""}${note.link ? html`<a href=${linkTo(note.link)}><${Prose} text=${note.text} /></a>` : html`<${Prose} text=${note.text} />`}${note.why ? html` (<${Prose} text=${note.why} />)` : ""}`)}.</p>` : ""}
    ${data.missing.length ? html`<p class="also">Not in these figures: ${data.missing.map((text, i) => html`${i ? "; " : ""}<${Prose} text=${text} />`)}.</p>` : ""}
  </section>`;
}

const Problem = ({ of, at }) => html`<article class="problem">
  <${Icon} name=${levelIcon(of.level)} tone=${levelTone(of.level)} />
  <div class="what"><h3><${Prose} text=${of.title} /></h3><p class="why"><${Prose} text=${of.text} />${of.remedy ? html` <${Prose} text=${of.remedy.text} />` : ""}</p></div>
  <div class="fact f1"><span>For</span><b>${known(of.since_ms) ? html`<${Quantity} of=${duration((at - of.since_ms) / 1000)} />` : "unknown"}</b>
    <span>${known(of.since_ms) ? `since ${moment(of.since_ms, at).replace(` ${zone()}`, "")}` : of.unknown.since_ms}</span></div>
  <div class="fact f2"><span>${of.code === "lost" ? "Lost" : "Waiting"}</span><b class="tabular">${known(of.records_behind) ? exact(of.records_behind) : "unknown"}</b><span>records</span></div>
  <div class="fact f3"><span>Loss begins in</span><${Loss} of=${of} at=${at} /></div>
  <div class="go">${of.code === "lost" ? html`<button class="button" type="button" onClick=${() => acknowledge(of.id)}>Acknowledge</button>`
    : html`<a class="button" href=${linkTo(of.link)} aria-label=${`Open: ${of.title.replaceAll("`", "")}`}>Open</a>`}</div>
</article>`;

/** When the source begins to delete what was not copied. Red under a day; never blank. */
export function Loss({ of, at }) {
  if (known(of.seconds_until_loss)) {
    const tone = of.seconds_until_loss < DAY ? "bad" : "";
    return html`<b class=${tone}>${of.seconds_until_loss <= 0 ? "now" : html`<${Quantity} of=${duration(of.seconds_until_loss)} />`}</b><span>${known(of.loss_at_ms) ? `${of.seconds_until_loss < DAY ? "at " : ""}${about(of.loss_at_ms, at)}` : ""}</span>`;
  }
  const reason = of.not_applicable?.seconds_until_loss;
  const isKept = reason?.startsWith(NOT_BY_RETENTION);
  return reason ? html`<b class="small">${isKept ? NOT_BY_RETENTION : "\u2013"}</b><span>${isKept ? reason.slice(NOT_BY_RETENTION.length + 2) : reason}</span>`
    : html`<b>unknown</b><span title=${of.unknown?.seconds_until_loss}>${of.unknown?.seconds_until_loss ?? ""}</span>`;
}
