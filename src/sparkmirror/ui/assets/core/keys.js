// Keys for the whole page: / filters, g then a letter goes to a view, ? lists them.
import { html } from "./html.js";
import { VIEWS, href } from "./route.js";
import { tell } from "../parts/dialog.js";
import { moveRow } from "../parts/table.js";

const PATIENCE_MS = 1500; // between g and the letter of the view

const LIST = [
  ["/", "filter"],
  ["j k, arrows", "next and previous row"],
  ["Enter, Esc", "open and close a row"],
  ...VIEWS.map(([, title, letter]) => [`g ${letter}`, title]),
  ["?", "this list"],
];

export function listen() {
  let since = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const view = VIEWS.find(([, , letter]) => letter === event.key);
    if (view && Date.now() - since < PATIENCE_MS) {
      since = 0;
      location.hash = href(view[0]);
      return;
    }
    since = event.key === "g" ? Date.now() : 0;
    act(event);
  });
}

function act(event) {
  const table = document.querySelector("main table.cards");
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("find")?.focus();
  } else if (event.key === "?") {
    tell("Keys", html`<dl class="keys">${LIST.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>`);
  } else if (table && !table.contains(event.target) && (event.key === "j" || event.key === "k")) {
    moveRow(table, event.key === "j" ? 1 : -1);
  }
}
