// Starts the page: the stream of news, the keys, and the view that the address names.
import "./vendor/signals.js"; // components that read a signal are drawn again when it changes
import { html, render } from "./core/html.js";
import { Component } from "./vendor/preact.js";
import { listen } from "./core/keys.js";
import { link, overview, start } from "./core/live.js";
import { route } from "./core/route.js";
import { Command } from "./parts/command.js";
import { Prose } from "./parts/words.js";
import { Connectors } from "./views/connectors.js";
import { Events } from "./views/events.js";
import { Failover } from "./views/failover.js";
import { Flow } from "./views/flow.js";
import { Groups } from "./views/groups.js";
import { Overview } from "./views/overview.js";
import { Shell, chosenFlow } from "./views/shell.js";
import { Topics } from "./views/topics.js";

const PATIENT_MS = 5000;

function View() {
  const data = overview.value;
  if (!data) return html`<${Waiting} />`;
  if (!data.flows.length) return html`<${Empty} of=${data.verdict} />`;
  const { view } = route.value;
  const flow = chosenFlow(data);
  if (flow && !data.flows.some((each) => each.flow === flow)) return html`<${NoFlow} flow=${flow} />`;
  switch (view) {
    case "flow": return html`<${Flow} key=${flow} flow=${flow} />`;
    case "topics": return html`<${Topics} />`;
    case "groups": return html`<${Groups} />`;
    case "connectors": return html`<${Connectors} />`;
    case "events": return html`<${Events} />`;
    case "failover": return html`<${Failover} key=${flow} flow=${flow} />`;
    default: return html`<${Overview} data=${data} />`;
  }
}

/** A mistake of ours in one view leaves the frame, and says so. */
class Boundary extends Component {
  componentDidCatch(error) {
    this.setState({ error, at: this.props.at });
    console.error(error);
  }

  render({ at, children }, { error, at: then }) {
    if (!error || at !== then) return children;
    return html`<section class="panel empty" role="alert"><h2>This view cannot be shown</h2><p>${String(error.message)}</p>
      <p>Please report it. Meanwhile: <code>sparkmirror ${at === "overview" ? "flows" : at}</code></p></section>`;
  }
}

/** Grey blocks in the final places; after 5 s the reason. */
function Waiting() {
  const { state, reason, since } = link.value;
  const block = (height, width) => html`<span class="block" style=${{ height: `${height}px`, width }} />`;
  return html`<section class="panel blocks" aria-busy="true">${block(30, "46%")}${block(18, "70%")}</section>
    <section class="panel blocks" aria-busy="true">${block(64, "100%")}</section>
    <section class="panel blocks" aria-busy="true">${block(240, "100%")}</section>
    <p class="small third">Asking ${location.host} for flows, topics and groups\u2026 ${state === "gone" || Date.now() - since > PATIENT_MS ? reason : ""}</p>`;
}

function Empty({ of }) {
  const [text, command] = [of.text.replace(/`([^`]*)`\.?$/, ""), /`([^`]*)`\.?$/.exec(of.text)?.[1]];
  return html`<section class="panel empty"><h2>${of.head}</h2><p><${Prose} text=${text} /></p>${command ? html`<${Command} of=${command} />` : ""}</section>`;
}

const NoFlow = ({ flow }) => html`<section class="panel empty"><h2>No flow ${flow}</h2>
  <p>It ended, or the address is wrong. <a href="#overview">All flows</a></p></section>`;

const Page = () => html`<${Shell}><${Boundary} at=${route.value.view}><${View} /><//><//>`;
render(html`<${Page} />`, document.getElementById("app"));
listen();
start();
