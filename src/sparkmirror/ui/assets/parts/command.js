// A command to copy. Its words break only at spaces.
import { html } from "../core/html.js";
import { useState } from "../vendor/hooks.js";

const SHOWN_MS = 2000;
const WHOLE = 30;

async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS browsers give no clipboard: the old way, by a selection.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function Copy({ text, label = "Copy", little = true }) {
  const [word, setWord] = useState(label);
  const copy = async (event) => {
    event.stopPropagation();
    try {
      await copyText(text);
      setWord("Copied");
    } catch {
      setWord("Select it");
    }
    setTimeout(() => setWord(label), SHOWN_MS);
  };
  return html`<button class=${little ? "button little" : "button"} type="button" onClick=${copy}>
    <span aria-live="polite">${word}</span></button>`;
}

export const Command = ({ of }) => html`
  <div class="command"><span>${of.split(" ").map((word, i) => html`${i ? " " : ""}<span class=${word.length <= WHOLE ? "nowrap" : ""}>${word}</span>`)}</span>
    <${Copy} text=${of} /></div>`;
