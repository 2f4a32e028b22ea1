// Rows of a long list, asked for page by page as they come near the screen. The worker filters and sorts.
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { ask } from "./api.js";
import { isLive, overview } from "./live.js";

const PAGE = 200;
const EVERY_MS = 2000;
const LEFT_MS = 5000; // so long after the pointer left, rows may change places again

/** { head, rowAt, error, again, onWindow, hover }: `head` is the newest answer without its rows. */
export function usePages(what, { version, keyOf }) {
  const [loads, redraw] = useState(0);
  const list = useRef(null);
  const held = useRef({ inside: false, until: 0 });
  const near = useRef([0, 1]); // the rows near the screen
  if (list.current?.what !== what) {
    // What is shown stays until the first page of the new list is there.
    list.current = { what, pages: new Map(), before: list.current, head: null, error: null, number: 0 };
  }
  const shown = list.current.head || !list.current.before ? list.current : list.current.before;
  if (list.current.head) list.current.before = null;

  const newest = overview.value?.versions?.[version];
  const load = async (mine) => {
    const number = ++mine.number;
    mine.version = newest;
    mine.busy = true;
    const numbers = pagesOf(near.current);
    try {
      const answers = await Promise.all(
        numbers.map((page) => ask(`${what}${what.includes("?") ? "&" : "?"}offset=${page * PAGE}&limit=${PAGE}`)),
      );
      if (mine.number !== number) return;
      const isHeld = held.current.inside || Date.now() < held.current.until;
      numbers.forEach((page, i) => {
        const rows = answers[i].rows;
        const old = mine.pages.get(page);
        mine.pages.set(page, isHeld && old ? inOldOrder(old, rows, keyOf) : rows);
      });
      mine.head = answers[0];
      mine.error = null;
    } catch (error) {
      if (mine.number !== number) return;
      mine.error = error;
    }
    mine.at = Date.now();
    mine.busy = false;
    redraw((count) => count + 1);
  };

  const live = isLive.value;
  useEffect(() => {
    const mine = list.current;
    const wait = mine.at ? Math.max(0, mine.at + EVERY_MS - Date.now()) : mine.before?.at ? 150 : 0;
    if (mine.busy || (mine.at && (!live || mine.version === newest))) return undefined;
    const timer = setTimeout(load, wait, mine);
    return () => clearTimeout(timer);
  }, [what, newest, live, loads]);

  return {
    head: shown.head,
    error: list.current.error,
    again: () => load(list.current),
    rowAt: (index) => shown.pages.get(Math.floor(index / PAGE))?.[index % PAGE],
    onWindow: (first, last) => {
      const mine = list.current;
      near.current = [first, last];
      if (mine.head && pagesOf(near.current).some((page) => !mine.pages.has(page))) load(mine);
    },
    hover: {
      onPointerEnter: () => { held.current.inside = true; },
      onPointerLeave: () => { held.current = { inside: false, until: Date.now() + LEFT_MS }; },
    },
  };
}

function pagesOf([first, last]) {
  const numbers = [];
  for (let page = Math.floor(first / PAGE); page * PAGE < Math.max(last, first + 1); page += 1) numbers.push(page);
  return numbers;
}

/** New values in the old places: no row changes its place under the pointer. */
export function inOldOrder(old, fresh, keyOf) {
  const byKey = new Map(fresh.map((row) => [keyOf(row), row]));
  const stayed = old.map((row) => byKey.get(keyOf(row))).filter(Boolean);
  const there = new Set(stayed.map(keyOf));
  return [...stayed, ...fresh.filter((row) => !there.has(keyOf(row)))];
}

export function query(values) {
  const all = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return new URLSearchParams(all).toString();
}
