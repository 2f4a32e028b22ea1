// What stands in a panel while its data is on the way, and when its request failed.
import { html } from "../core/html.js";
import { Icon } from "./icon.js";

export const Blocks = ({ heights = [30, 18] }) => html`
  <div class="blocks" aria-busy="true">${heights.map((height, i) => html`
    <span class="block" style=${{ height: `${height}px`, width: `${[46, 70, 58][i % 3]}%` }} />`)}</div>`;

export const Failed = ({ error, again, what }) => html`
  <div class="failure" role="alert"><${Icon} name="warn" tone="warn" />
    <div><b class="bold">${what} could not be loaded.</b> <span class="second">${error.message}</span></div>
    <button class="button little grow" type="button" onClick=${again}>Try again</button></div>`;

/** Data, else its failure, else grey blocks in its place. A failure beside old data is shown above it. */
export function Loaded({ answer, what, heights, children }) {
  const failed = answer.error && html`<${Failed} error=${answer.error} again=${answer.again} what=${what} />`;
  if (!answer.data) return failed ?? html`<${Blocks} heights=${heights} />`;
  return html`${failed}${children(answer.data)}`;
}
