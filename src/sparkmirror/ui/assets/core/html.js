// Templates: html`<p>${text}</p>` makes elements; what stands in ${} is never parsed as HTML.
import { h, Fragment, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { Fragment, render };
