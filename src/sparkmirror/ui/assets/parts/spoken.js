// What a screen reader says by itself when it changes: at most every 10 s.
import { html } from "../core/html.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

const EVERY_MS = 10000;

export function Spoken({ text }) {
  const [said, setSaid] = useState(text);
  const at = useRef(Date.now());
  useEffect(() => {
    const say = () => { at.current = Date.now(); setSaid(text); };
    const timer = setTimeout(say, Math.max(0, at.current + EVERY_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [text]);
  return html`<p class="sr" aria-live="polite">${said}</p>`;
}
