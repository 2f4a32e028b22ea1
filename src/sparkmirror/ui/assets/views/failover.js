// Failover: could I switch now, and what would it cost? The answer, its numbers, the evidence, the steps.
import { html } from "../core/html.js";
import { exact, known, second, zone } from "../core/format.js";
import { useAnswer } from "../core/answer.js";
import { linkTo } from "../core/links.js";
import { query } from "../core/pages.js";
import { go, route } from "../core/route.js";
import { Command, Copy } from "../parts/command.js";
import { Figures, Segments } from "../parts/controls.js";
import { Icon } from "../parts/icon.js";
import { Loaded } from "../parts/request.js";
import { Spoken } from "../parts/spoken.js";
import { Prose } from "../parts/words.js";
import { levelIcon, levelTone } from "./verdict.js";


export function Failover({ flow }) {
  const [source, target] = flow.split("->");
  const planned = route.value.query.mode === "planned";
  const answer = useAnswer(`sparkmirror/failover?${query({ source, target })}`, { version: "failover" });
  return html`<div class="bar"><${Segments} label="Which failover" choices=${[["lost", `${source} is lost now`], ["planned", "Planned move"]]}
      chosen=${planned ? "planned" : "lost"} onChoose=${(mode) => go({ mode: mode === "planned" ? mode : null })} />
      <span class="end">${answer.data ? html`<${Copy} text=${report(answer.data, planned)} label="Copy report" little=${false} />` : ""}</span></div>
    <${Loaded} answer=${answer} what="The readiness" heights=${[40, 18, 60]}>${(data) => html`<${Answer} data=${data} planned=${planned} />`}<//>`;
}

function Answer({ data, planned }) {
  const { sentence, steps } = planned ? data.planned : data.lost;
  const check = `sparkmirror failover check ${data.source} ${data.target}${planned ? " --planned" : ""}`;
  const isStep = steps.some((step) => step.command.includes("failover check"));
  return html`<section class="panel">
      <${Spoken} text=${sentence.head} /><div class="answer"><${Icon} name=${levelIcon(sentence.level)} tone=${levelTone(sentence.level)} /><div><h2>${sentence.head}</h2><p><${Prose} text=${sentence.text} /></p></div></div>
      <${Figures} panel=${false} of=${numbers(data, planned)} /></section>
    <div class="two failover"><section class="panel evidence"><div class="head"><h2>Evidence</h2><span class="grow small third">as of ${second(data.now_ms)} ${zone()}</span></div>
        <ul>${data.evidence.map((each) => html`<${Evidence} key=${each.code} of=${each} />`)}</ul></section>
      <section class="panel"><div class="head"><h2>${planned ? "Planned move, in this order" : `If ${data.source} is lost`}</h2></div>
        <ol class="steps">${steps.map((step, i) => html`<li class=${step.is_done ? "done" : ""}>${step.is_done ? html`<${Icon} name="ok" tone="ok" />` : html`<span class="number">${i + 1}</span>`}
          <div><b>${step.title}</b>${step.text ? html`<p class="small third"><${Prose} text=${step.text} /></p>` : ""}${step.command ? html`<${Command} of=${step.command} />` : ""}</div></li>`)}</ol>
        ${isStep ? "" : html`<p class="check small second">In a script, exit code 0 means that nothing would be lost: <code>${check}</code></p>`}</section></div>`;
}

function numbers(data, planned) {
  const why = data.unknown ?? {};
  const count = (field) => (known(data[field]) ? exact(data[field]) : html`<span title=${why[field]}>unknown</span>`);
  const lost = data.records_lost;
  const stuck = known(lost) && known(data.records_on_the_way) ? lost - data.records_on_the_way : 0;
  return [
    [planned ? `Not yet on ${data.target}` : "Records lost", html`<span class=${!planned && stuck > 0 ? "bad" : ""}>${count("records_lost")}</span>`, known(data.records_on_the_way) ? `${exact(data.records_on_the_way)} of them on the way` : why.records_lost ?? ""],
    ["Records read again", count("records_reread"), known(data.groups) ? `by ${exact(data.groups)} groups` : why.records_reread ?? ""],
    ["Groups without an offset", count("groups_without_offset"), known(data.groups) ? `of ${exact(data.groups)} groups` : why.groups_without_offset ?? ""],
  ];
}

const Evidence = ({ of }) => html`<li><${Icon} name=${levelIcon(of.level)} tone=${levelTone(of.level)} />
  <div><b><${Prose} text=${of.question} /></b><div class="small second"><${Linked} text=${of.text} links=${of.links} /></div></div>
  <span class="word ${levelTone(of.level)}">${of.word}</span></li>`;

/** Names in the text that the worker knows a view of are links. */
function Linked({ text, links }) {
  const names = Object.keys(links ?? {});
  if (!names.length) return html`<${Prose} text=${text} />`;
  return text.split("`").flatMap((part, i) => {
    if (i % 2) return links[part] ? html`<a href=${linkTo(links[part])}><code>${part}</code></a>` : html`<code class="nowrap">${part}</code>`;
    return splitAt(part, names).map((piece) => (links[piece] ? html`<a href=${linkTo(links[piece])}>${piece}</a>` : piece));
  });
}

function splitAt(text, names) {
  const name = names.find((each) => text.includes(each));
  if (!name) return [text];
  const at = text.indexOf(name);
  return [...splitAt(text.slice(0, at), names), name, ...splitAt(text.slice(at + name.length), names)].filter(Boolean);
}

/** Plain text for a ticket or a chat. */
function report(data, planned) {
  const { sentence, steps } = planned ? data.planned : data.lost;
  return [
    `Failover ${data.source} to ${data.target}, ${planned ? "planned" : `${data.source} is lost`}, as of ${new Date(data.now_ms).toISOString()}`,
    sentence.head,
    sentence.text.replaceAll("`", ""),
    "",
    ...data.evidence.map((each) => `[${each.word}] ${each.question}: ${each.text.replaceAll("`", "")}`),
    "",
    ...steps.map((step, i) => `${i + 1}. ${step.title}${step.text ? `: ${step.text}` : ""}${step.command ? `\n   ${step.command}` : ""}`),
  ].join("\n");
}
