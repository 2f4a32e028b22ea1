// Requests to the worker that served this page. An answer is data or a Failure that says what to do.
export class Failure extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

const PATIENCE_MS = 20000;
// /ui/ is beside /connectors and /sparkmirror, also behind a proxy that adds a prefix.
const ROOT = new URL("../", document.baseURI);

/** "connectors/a%20b" from path`connectors/${name}`: names are foreign text. */
export const path = (texts, ...names) =>
  texts.reduce((before, text, i) => before + encodeURIComponent(names[i - 1]) + text);

export async function ask(what, { method = "GET", body } = {}) {
  let answer;
  try {
    answer = await fetch(new URL(what, ROOT), {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  } catch (error) {
    throw new Failure(
      error.name === "TimeoutError"
        ? `The worker did not answer within ${PATIENCE_MS / 1000} s.`
        : "The worker cannot be reached from this browser.",
    );
  }
  const text = await answer.text();
  if (!answer.ok) throw new Failure(reasonOf(text, answer), answer.status);
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new Failure("The worker's answer is not JSON: is there another server in between?");
  }
}

function reasonOf(text, answer) {
  try {
    return JSON.parse(text).message;
  } catch {
    return `The worker answered ${answer.status} ${answer.statusText}.`;
  }
}

export const streamUrl = (what) => new URL(what, ROOT).href;
