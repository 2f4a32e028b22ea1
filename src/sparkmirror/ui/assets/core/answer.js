// Data of one request that stays fresh: asked again when the stream reports a newer version of it.
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { ask } from "./api.js";
import { isLive, now, overview } from "./live.js";

const NONE = { data: null, error: null, of: null };

/**
 * The answer to GET `what`: { data, error, of, again }. `version` names what of overview.versions tells
 * that it changed; `every` is the least time between two requests. Data stays while it is asked again.
 */
export function useAnswer(what, { version = "", every = 2000 } = {}) {
  const [answer, setAnswer] = useState(NONE);
  const asked = useRef({ number: 0, at: 0, what: null, version: null });
  const newest = version ? overview.value?.versions?.[version] : Math.floor(now.value / every);
  const live = isLive.value;

  const request = async () => {
    const number = ++asked.current.number;
    asked.current = { number, at: Date.now(), what, version: newest, busy: true };
    let next;
    try {
      next = { data: await ask(what), error: null, of: what };
    } catch (error) {
      next = { error, of: what };
    }
    if (asked.current.number !== number) return;
    asked.current.busy = false;
    setAnswer((old) => ({ ...old, ...next }));
  };

  useEffect(() => {
    if (!what) return undefined;
    const last = asked.current;
    const isNew = last.what !== what;
    const isOld = last.version !== newest && live && !last.busy;
    if (!isNew && !isOld) return undefined;
    // Typing in a filter changes `what` letter by letter: the first request goes at once, the rest wait.
    const wait = Math.max(0, last.at + (isNew ? 150 : every) - Date.now());
    const timer = setTimeout(request, wait);
    return () => clearTimeout(timer);
  }, [what, newest, live, answer]);

  return { ...(what ? answer : NONE), again: request };
}
