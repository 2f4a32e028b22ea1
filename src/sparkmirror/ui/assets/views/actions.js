// What can be done to a connector, through Connect's own REST. Each question says what stops, when
// loss begins and what is kept; then the page shows what was asked for until the worker reports it.
import { signal } from "../vendor/signals-core.js";
import { html } from "../core/html.js";
import { about, duration, exact, known, plain, plural } from "../core/format.js";
import { ask as request } from "../core/api.js";
import { now, overview } from "../core/live.js";
import { ask } from "../parts/dialog.js";

const PATIENCE_MS = 30000;
const RESTART_MS = 4000; // a restart shows no state of its own for sure
const isWriter = (who) => who.role === "operator";
export const urlOf = (of, rest = "") => `${of.path.replace(/^\//, "")}${rest}`;
const keyOf = (of) => of.prefix + of.name;

/** What was asked for and is not reported yet: key -> { word, until(connector), at }. */
const pending = signal(new Map());

export function pendingOf(of) {
  const asked = pending.value.get(keyOf(of));
  if (!asked) return null;
  const isOver = asked.until(of, now.value - asked.at) || now.value - asked.at > PATIENCE_MS;
  return isOver ? null : asked.word;
}

function mark(of, word, until) {
  pending.value = new Map([...pending.value, [keyOf(of), { word, until, at: Date.now() }]]);
}

async function run(of, { url, method, body, word, until, again }) {
  await request(urlOf(of, url), { method, body });
  mark(of, word, until);
  setTimeout(again, 300);
}

export function Actions({ of, who, again }) {
  if (!isWriter(who)) {
    return html`<p class="actions small second">Read-only: you are signed in as ${who.name || "a viewer"}. Actions need the role operator.</p>`;
  }
  const failed = of.tasks.filter((task) => task.state === "FAILED").length;
  const button = (word, onClick) => html`<button class="button" type="button" onClick=${onClick}>${word}</button>`;
  return html`<div class="actions">
    ${failed ? button(failed === 1 ? "Restart failed task" : `Restart ${failed} failed tasks`, () => restart(of, true, again)) : ""}
    ${of.state === "RUNNING" ? button("Pause\u2026", () => pause(of, again)) : ""}
    ${of.state === "PAUSED" || of.state === "STOPPED" ? button("Resume", () => resume(of, again)) : ""}
    ${of.state === "STOPPED" ? "" : button("Stop\u2026", () => stop(of, again))}
    ${of.state === "STOPPED" ? "" : button("Restart all\u2026", () => restart(of, false, again))}</div>`;
}

export const TaskAction = ({ of, task, who, again }) =>
  isWriter(who) && task.state === "FAILED"
    ? html`<button class="button little" type="button" aria-label=${`Restart task ${task.task}`} onClick=${() => restartTask(of, task, again)}>Restart</button>`
    : "";

const partitionsOf = (of) => of.tasks.reduce((sum, task) => sum + (task.partitions ?? 0), 0);

/** What ends: [icon, text]. */
function stops(of) {
  if (of.kind === "source") return ["info", `${plural(partitionsOf(of), "partition")} of ${of.flow.replace("->", " to ")} are no longer copied until you resume it.`];
  if (of.kind === "checkpoint") return ["info", "Offsets of groups are no longer translated: a failover would read more records again."];
  return ["info", "Heartbeats end: nobody can see from them that the flow is alive."];
}

/** When the source begins to delete what was not copied, were it stopped now. */
function loss(of) {
  if (of.kind !== "source") return ["ok", "Records are still copied."];
  const flow = overview.value?.flows.find((each) => each.flow === of.flow);
  if (known(flow?.seconds_until_loss)) {
    const level = flow.seconds_until_loss < 86400 ? "bad" : "warn";
    return [level, `Loss begins in ${plain(duration(flow.seconds_until_loss))}${known(flow.loss_at_ms) ? `, ${about(flow.loss_at_ms, overview.value.now_ms)}` : ""}: so long the source keeps what is not copied yet.`];
  }
  const reason = flow?.not_applicable.seconds_until_loss;
  return reason ? ["ok", `No loss begins: ${reason}.`] : ["warn", `When loss would begin is unknown: ${flow?.unknown.seconds_until_loss ?? "the flow has no figures"}.`];
}

const KEPT = ["ok", "Its offsets are kept; a later resume goes on where it ended."];

function pause(of, again) {
  ask({
    title: `Pause ${of.name}?`, points: [stops(of), loss(of), KEPT], word: "Pause",
    act: () => run(of, { url: "/pause", method: "PUT", word: "Pausing\u2026", until: (each) => each.state === "PAUSED", again }),
  });
}

function stop(of, again) {
  ask({
    title: `Stop ${of.name}?`, points: [stops(of), loss(of), ["info", "Its tasks end. Its offsets can be changed while it is stopped."], KEPT], word: "Stop connector", danger: true, typed: of.name,
    act: () => run(of, { url: "/stop", method: "PUT", word: "Stopping\u2026", until: (each) => each.state === "STOPPED", again }),
  });
}

function resume(of, again) {
  ask({
    title: `Resume ${of.name}?`, points: [["ok", "It goes on where it ended."], ...(of.kind === "source" ? [["info", "A backlog is copied as fast as both clusters allow."]] : [])], word: "Resume",
    act: () => run(of, { url: "/resume", method: "PUT", word: "Resuming\u2026", until: (each) => each.state === "RUNNING", again }),
  });
}

/** A failure with a remedy comes back at once if only a restart is done. */
const sameFailure = (tasks) => {
  const remedy = tasks.find((task) => task.remedy)?.remedy;
  return remedy ? [["warn", `A restart alone may not help. ${remedy.text}`]] : [];
};

function restart(of, onlyFailed, again) {
  const failed = of.tasks.filter((task) => task.state === "FAILED");
  const some = onlyFailed ? plural(failed.length, "failed task") : plural(of.tasks.length, "task");
  ask({
    title: `Restart ${onlyFailed ? some : `${of.name} and its ${some}`}?`,
    points: [["info", onlyFailed ? "What runs goes on." : `${exact(partitionsOf(of))} partitions pause for a few seconds.`], ["ok", "It goes on where it ended; nothing is left out."], ...sameFailure(failed)],
    word: onlyFailed ? "Restart" : "Restart all",
    act: () => run(of, { url: `/restart?includeTasks=true&onlyFailed=${onlyFailed}`, method: "POST", word: "Restarting\u2026", until: (_, age) => age > RESTART_MS, again }),
  });
}

function restartTask(of, task, again) {
  ask({
    title: `Restart task ${task.task} of ${of.name}?`, points: [["info", `Its ${plural(task.partitions ?? 0, "partition")} go on where they ended.`], ...sameFailure([task])], word: "Restart task",
    act: () => run(of, { url: `/tasks/${task.task}/restart`, method: "POST", word: "Restarting\u2026", until: (_, age) => age > RESTART_MS, again }),
  });
}
