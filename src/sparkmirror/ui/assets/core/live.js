// The worker's stream: one overview a second. What is on the page is live, or says since when not.
import { computed, signal } from "../vendor/signals-core.js";
import { ask, streamUrl } from "./api.js";

const SILENCE_MS = 15000; // the worker sends at least every 5 s
const SNAPSHOT = "sparkmirror/overview";
const STREAM = "sparkmirror/stream";

export const overview = signal(null);
/** connecting, live, silent (no stream, but the worker answers), gone (it does not answer). */
export const link = signal({ state: "connecting", reason: "", retryAt: 0, since: Date.now() });
/** The first snapshot is as fresh as news are. */
export const isLive = computed(() => ["live", "connecting"].includes(link.value.state));
/** One clock for "for 14 min" and "trying again in 4 s". */
export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 1000);

let source = null;
let silence = 0;
let retry = 0;
let attempt = 0;
let generation = 0; // of connections: what an older one brings is not heard

export function start() {
  document.addEventListener("visibilitychange", () => {
    // A hidden tab costs the worker nothing.
    if (document.hidden) disconnect();
    else connect();
  });
  connect();
}

export function retryNow() {
  attempt = 0;
  connect();
}

async function connect() {
  disconnect();
  const mine = generation;
  try {
    const data = await ask(SNAPSHOT);
    if (mine !== generation) return;
    overview.value = data;
  } catch (failure) {
    if (mine === generation) lose("gone", failure.message);
    return;
  }
  const stream = new EventSource(streamUrl(STREAM));
  source = stream;
  listenFor();
  stream.addEventListener("overview", (event) => {
    if (source !== stream) return;
    overview.value = JSON.parse(event.data);
    attempt = 0;
    link.value = { state: "live", reason: "", retryAt: 0, since: Date.now() };
    listenFor();
  });
  stream.onerror = () => { if (source === stream) lose("silent", "The stream of news broke off."); };
}

function listenFor() {
  clearTimeout(silence);
  silence = setTimeout(() => lose("silent", "No news for 15 s."), SILENCE_MS);
}

function disconnect() {
  generation += 1;
  clearTimeout(silence);
  clearTimeout(retry);
  source?.close();
  source = null;
}

function lose(state, reason) {
  disconnect();
  const wait = Math.min(30, 2 ** attempt) * 1000; // 1, 2, 4 ... 30 s
  attempt += 1;
  const since = link.value.state === "live" || link.value.state === "connecting" ? Date.now() : link.value.since;
  link.value = { state, reason, retryAt: Date.now() + wait, since };
  if (!document.hidden) retry = setTimeout(connect, wait);
}
