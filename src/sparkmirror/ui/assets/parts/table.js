// A table of up to 10,000 rows: only those near the screen are in the document, the page scrolls.
import { html } from "../core/html.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.js";
import { go, route } from "../core/route.js";
import { Icon } from "./icon.js";

const WINDOWED_FROM = 120; // fewer rows are all there, each as high as it likes
const SPARE = 12; // rows above and below the screen
const NARROW = matchMedia("(max-width: 1000px)");

/**
 * columns: [{ label, tone, sort, width }]; rowAt(i): a row, or undefined while it is loaded;
 * keyOf(row): what `open` in the address says; cells(row, isOpen): the <td>s; detail(row): what opens.
 */
export function Table({ label, columns, total, rowAt, keyOf, cells, detail, sorted, rowHeight = 36, narrowHeight = 64, onWindow }) {
  const body = useRef(null);
  const opened = useRef({ index: -1, height: 0 });
  const [range, setRange] = useState([0, WINDOWED_FROM]);
  const windowed = total > WINDOWED_FROM;
  const height = NARROW.matches ? narrowHeight : rowHeight;
  const { open } = route.value.query;

  const measure = () => {
    if (!windowed || !body.current) {
      setRange([0, WINDOWED_FROM]);
      return;
    }
    const above = Math.max(0, -body.current.getBoundingClientRect().top);
    const shift = opened.current.index >= 0 && above > opened.current.index * height ? opened.current.height : 0;
    const first = Math.max(0, Math.floor((above - shift) / height) - SPARE);
    const last = Math.min(total, first + Math.ceil(innerHeight / height) + 2 * SPARE);
    setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
  };
  useEffect(() => {
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [total, windowed, height, open]);
  const [first, last] = windowed ? range : [0, total];
  useEffect(() => { onWindow?.(first, Math.min(last, total)); }, [first, last, total]);
  useLayoutEffect(() => {
    const sub = body.current?.querySelector("tr.detail");
    if (sub) opened.current.height = sub.offsetHeight;
    else if (!open) opened.current = { index: -1, height: 0 };
  });

  const rows = [];
  for (let i = first; i < Math.min(last, total); i += 1) {
    const row = rowAt(i);
    const key = row ? keyOf(row) : null;
    const isOpen = key !== null && key === open;
    if (isOpen) opened.current.index = i;
    rows.push(html`<${Row} key=${key ?? `at ${i}`} row=${row} name=${key} index=${i} isOpen=${isOpen} cells=${cells}
      columns=${columns.length} hasDetail=${Boolean(detail)} total=${total} />`);
    if (isOpen && detail) {
      rows.push(html`<tr class="detail" key=${`${key} detail`}><td colspan=${columns.length + 1}>${detail(row)}</td></tr>`);
    }
  }
  const hiddenOpen = opened.current.index >= 0 && (opened.current.index < first || opened.current.index >= last) ? opened.current.height : 0;
  const above = first * height + (opened.current.index < first ? hiddenOpen : 0);
  const below = Math.max(0, total - last) * height;
  return html`<table class="cards ${windowed ? "fixed" : ""}" aria-rowcount=${total + 1} aria-label=${label} onKeyDown=${onKey}>
    <thead><tr aria-rowindex="1">${columns.map((column) => html`<${Head} ...${column} width=${windowed ? column.width : undefined} sorted=${sorted} />`)}
      ${detail ? html`<th class="chevron"><span class="sr">Details</span></th>` : ""}</tr></thead>
    <tbody ref=${body}>
      ${above > 0 ? html`<${Gap} key="above" height=${above} />` : ""}${rows}${below > 0 ? html`<${Gap} key="below" height=${below} />` : ""}
    </tbody></table>`;
}

const Gap = ({ height }) => html`<tr class="gap" aria-hidden="true"><td style=${{ height: `${height}px` }}></td></tr>`;

function Row({ row, name, index, isOpen, cells, columns, hasDetail }) {
  if (!row) return html`<tr class="row" aria-rowindex=${index + 2}><td colspan=${columns + 1}><span class="block">\u00a0</span></td></tr>`;
  const toggle = (event) => {
    if (!hasDetail || event.target.closest("a, .button") || getSelection()?.toString()) return;
    go({ open: isOpen ? null : name });
  };
  return html`<tr class="row ${isOpen ? "open" : ""}" aria-rowindex=${index + 2} onClick=${toggle}>${cells(row, isOpen)}
    ${hasDetail ? html`<td class="chevron"><button class="expand" type="button" aria-expanded=${String(isOpen)} aria-label=${`Details of ${name.replace("->", " to ")}`}>
      <${Icon} name="chevron" /></button></td>` : ""}</tr>`;
}

const Head = ({ label, tone = "", sort, sorted, width }) => {
  const { query } = route.value;
  const [by, direction] = [query.sort ?? sorted?.by, query.dir ?? sorted?.dir ?? "desc"];
  if (!sort) return html`<th scope="col" class=${tone} style=${{ width }}>${label}</th>`;
  const isChosen = by === sort;
  const turn = () => go({ sort, dir: isChosen && direction === "desc" ? "asc" : "desc" });
  return html`<th scope="col" class=${tone} style=${{ width }} aria-sort=${isChosen ? `${direction}ending` : undefined}>
    <button type="button" onClick=${turn}>${label}${isChosen ? (direction === "desc" ? " \u25be" : " \u25b4") : ""}</button></th>`;
};

/** j, k and arrows go from row to row; Enter opens (it is a button), Esc closes. */
export function onKey(event) {
  if (event.key === "Escape" && route.value.query.open) {
    go({ open: null });
    return;
  }
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (!step || event.target.closest("input, textarea, .inner") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  moveRow(event.currentTarget, step);
}

export function moveRow(table, step) {
  const buttons = [...table.querySelectorAll("tr.row .expand")];
  const at = buttons.indexOf(document.activeElement);
  const next = buttons[at < 0 ? 0 : Math.max(0, Math.min(buttons.length - 1, at + step))];
  next?.focus({ preventScroll: true });
  next?.closest("tr").scrollIntoView({ block: "nearest" });
}
