// A dialog that says what will happen. Focus is on Cancel; what cannot be undone wants a name typed.
import { html, render } from "../core/html.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { Icon } from "./icon.js";
import { Prose } from "./words.js";

/** points: [icon, text]; act() does it and throws a Failure that is shown in the dialog. */
function Question({ title, points, word, danger, typed, act, body, wide, onDone }) {
  const place = useRef(null);
  const [name, setName] = useState("");
  const [state, setState] = useState({ busy: false, error: null });
  useEffect(() => { place.current.showModal(); }, []);
  const done = (event) => { event?.preventDefault(); onDone(); };
  const yes = async () => {
    setState({ busy: true, error: null });
    try {
      await act();
      onDone();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<dialog ref=${place} class=${wide ? "wide" : ""} aria-labelledby="question" onClose=${done} onCancel=${done}>
    <div class="body"><h2 id="question">${title}</h2>
      <ul>${points.map(([icon, text]) => html`<li><${Icon} name=${icon} tone=${icon === "info" ? "mute" : icon} /><span><${Prose} text=${text} /></span></li>`)}</ul>
      ${body ?? ""}
      ${typed ? html`<label><span class="small second">To confirm, type <code>${typed}</code></span>
        <input name="confirm" autocomplete="off" autocapitalize="off" spellcheck=${false} value=${name} onInput=${(event) => setName(event.target.value)} /></label>` : ""}
      ${state.error ? html`<div class="failure" role="alert"><${Icon} name="bad" tone="bad" /><span>${state.error.message}</span></div>` : ""}
    </div>
    <div class="buttons"><button class="button" type="button" autofocus onClick=${done}>Cancel</button>
      <button class="button ${danger ? "danger" : "main"}" type="button" disabled=${state.busy || (typed && name !== typed)} onClick=${yes}>${state.busy ? "Asking the worker\u2026" : word}</button></div>
  </dialog>`;
}

/** Ask; nothing happens until the reader says so. */
export function ask(question) {
  const before = document.activeElement;
  const place = document.createElement("div");
  document.body.append(place);
  const onDone = () => {
    render(null, place);
    place.remove();
    before?.focus?.();
  };
  render(html`<${Question} ...${question} onDone=${onDone} />`, place);
}

/** A dialog that only tells. */
export function tell(title, body) {
  const place = document.createElement("div");
  document.body.append(place);
  const close = () => { render(null, place); place.remove(); };
  const Told = () => {
    const dialog = useRef(null);
    useEffect(() => { dialog.current.showModal(); }, []);
    return html`<dialog ref=${dialog} aria-labelledby="told" onClose=${close}>
      <div class="body"><h2 id="told">${title}</h2>${body}</div>
      <div class="buttons"><button class="button" type="button" autofocus onClick=${close}>Close</button></div></dialog>`;
  };
  render(html`<${Told} />`, place);
}
