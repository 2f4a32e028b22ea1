// Numbers and times as people read them. A quantity is a list of [number, unit]; `unknown` is never 0.
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const pad = (number) => String(number).padStart(2, "0");

export const known = (value) => value !== null && value !== undefined;
export const exact = (value) => Math.round(value).toLocaleString("en-US");

/** 9,999 then 10.0 k, 15.4 M: for figures and axes. */
export function short(value) {
  if (Math.abs(value) >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return exact(value);
}

/** The same without a needless .0, for axes: 300 k. */
export const rounded = (value) => short(value).replace(".0 ", " ");

/** At most two units: 0.6 s, 14 min 10 s, 6 d 23 h. */
export function duration(seconds) {
  if (seconds <= 0) return [["0", "s"]];
  if (seconds < 9.95) return [[seconds.toFixed(1), "s"]];
  const whole = Math.round(seconds);
  if (whole < MINUTE) return [[String(whole), "s"]];
  if (whole < HOUR) return two(whole, MINUTE, "min", 1, "s");
  if (whole < DAY) return two(whole, HOUR, "h", MINUTE, "min");
  return two(whole, DAY, "d", HOUR, "h");
}

function two(whole, big, bigUnit, small, smallUnit) {
  const rest = Math.floor((whole % big) / small);
  const first = [String(Math.floor(whole / big)), bigUnit];
  return rest ? [first, [String(rest), smallUnit]] : [first];
}

/** The first unit only: for the rail. */
export const roughly = (seconds) => [duration(seconds)[0]];

/** Decimal units; below 1 two decimals. */
export function bytes(value, perSecond = "") {
  const steps = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [size, unit] = steps.find(([size]) => value >= size) ?? [1, "B"];
  const scaled = value / size;
  const text = size === 1 ? exact(value) : scaled.toFixed(scaled < 10 ? 2 : 1);
  return [[text, unit + perSecond]];
}

/** Throughput in MB/s, the one unit of all its figures; 0.002 is shown as <0.01. */
export function megabytes(perSecond) {
  const value = perSecond / 1e6;
  if (value === 0) return "0";
  if (value < 0.005) return "<0.01";
  return value < 1 ? value.toFixed(2) : value.toFixed(1);
}

export const milliseconds = (value) => (value < 10 ? value.toFixed(1) : exact(value));
export const plain = (quantity) => quantity.map(([number, unit]) => `${number} ${unit}`.trim()).join(" ");

// Times: UTC, or this machine's zone when the reader chose it.
let local = false;
export const isLocal = () => local;
export const setLocal = (on) => { local = on; };

function parts(ms) {
  const date = new Date(local ? ms - new Date(ms).getTimezoneOffset() * 60000 : ms);
  return {
    day: `${date.getUTCDate()} ${date.toLocaleString("en-US", { month: "short", timeZone: "UTC" })}`,
    year: date.getUTCFullYear(),
    minute: `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`,
    second: pad(date.getUTCSeconds()),
  };
}

export function zone() {
  if (!local) return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

export const minute = (ms) => parts(ms).minute;
export const second = (ms) => `${parts(ms).minute}:${parts(ms).second}`;
export const day = (ms) => `${parts(ms).day} ${parts(ms).year}`;

/** 03:12:45 UTC; on another day than `now` 4 Nov 09:12 UTC. */
export function moment(ms, now) {
  return day(ms) === day(now) ? `${second(ms)} ${zone()}` : `${parts(ms).day} ${minute(ms)} ${zone()}`;
}

/** The same for times to come, without seconds. */
export function about(ms, now) {
  return day(ms) === day(now) ? `${minute(ms)} ${zone()}` : `${parts(ms).day}, ${minute(ms)} ${zone()}`;
}

export const plural = (count, one, many = `${one}s`) => `${exact(count)} ${count === 1 ? one : many}`;
