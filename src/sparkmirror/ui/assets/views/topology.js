// Clusters and flows as a drawing: a triangle for three clusters, layers from left to right up to
// eight; more clusters, and phones, have the list of flows only.
import { html } from "../core/html.js";
import { known, megabytes, plain, duration } from "../core/format.js";
import { useLayoutEffect, useRef, useState } from "../vendor/hooks.js";
import { flowLink } from "../core/links.js";
import { Icon } from "../parts/icon.js";
import { Quantity, State } from "../parts/words.js";

const NODE = { width: 164, height: 58 };
const MOST_CLUSTERS = 8;
const LATE_SECONDS = 5;
const COLOURS = { failed: "bad", stuck: "warn-icon", "catching up": "accent", idle: "line-2", paused: "line-2", unknown: "line-2" };
const CLUSTER_ICONS = { ok: ["ok", "ok"], partly: ["warn", "warn"], unreachable: ["bad", "bad"], unknown: ["unknown", "mute"] };

export function Topology({ data }) {
  const place = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => setWidth(place.current?.clientWidth ?? 0));
    watcher.observe(place.current);
    setWidth(place.current.clientWidth);
    return () => watcher.disconnect();
  }, []);
  const { clusters, flows } = data;
  const drawn = clusters.length <= MOST_CLUSTERS;
  const layout = drawn && width ? placed(clusters, flows, width) : null;
  return html`<section class="panel topology"><div class="head"><h2>Topology</h2><span class="grow tiny third">Line width: throughput</span></div>
    <div class="drawing" ref=${place} style=${{ height: `${layout?.height ?? 316}px` }}>
      ${layout ? html`<svg aria-hidden="true">${flows.map((flow) => html`<${Edge} flow=${flow} layout=${layout} flows=${flows} />`)}</svg>
        ${flows.map((flow) => html`<${Label} key=${flow.flow} flow=${flow} layout=${layout} flows=${flows} />`)}` : ""}
      ${layout ? clusters.map((cluster) => html`<${Cluster} key=${cluster.alias} of=${cluster} at=${layout.nodes[cluster.alias]} />`) : ""}
      ${drawn ? "" : html`<p class="none second">${clusters.length} clusters are too many for a drawing: the flows are in the list.</p>`}
    </div></section>`;
}

/** Where each cluster stands. */
export function placed(clusters, flows, width) {
  const names = clusters.map((cluster) => cluster.alias);
  const left = NODE.width / 2 + 1;
  const right = width - NODE.width / 2 - 1;
  if (names.length === 2) return { height: 316, nodes: { [names[0]]: [left, 150], [names[1]]: [right, 150] } };
  if (names.length === 3) {
    const order = byLayer(names, flows).flat();
    return { height: 316, nodes: { [order[0]]: [left, 34], [order[1]]: [right, 34], [order[2]]: [width / 2, 286] } };
  }
  const layers = byLayer(names, flows);
  const height = Math.max(316, Math.max(...layers.map((layer) => layer.length)) * 110);
  const nodes = {};
  layers.forEach((layer, column) => layer.forEach((name, i) => {
    const x = layers.length > 1 ? left + (column * (right - left)) / (layers.length - 1) : width / 2;
    nodes[name] = [x, (height * (i + 0.5)) / layer.length];
  }));
  return { height, nodes, bare: true };
}

/** Sources first. Clusters of a circle (A to B and B to A) keep the order of their names' appearance. */
export function byLayer(names, flows) {
  const depth = Object.fromEntries(names.map((name) => [name, 0]));
  for (let round = 1; round < names.length; round += 1) {
    for (const { source, target } of flows) {
      const isBack = flows.some((other) => other.source === target && other.target === source && names.indexOf(target) < names.indexOf(source));
      if (!isBack && depth[target] <= depth[source] && depth[source] + 1 < names.length) depth[target] = depth[source] + 1;
    }
  }
  const layers = [];
  names.forEach((name) => { (layers[depth[name]] ??= []).push(name); });
  return layers.filter(Boolean);
}

/** From border to border of the two clusters; of two that go both ways each keeps to its side. */
function ends({ source, target }, { nodes }) {
  const [from, to] = [nodes[source], nodes[target]];
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const reach = (at, gap, way = 1) => {
    const across = (NODE.width / 2 + gap) / Math.abs(Math.cos(angle) || 1e-9);
    const down = (NODE.height / 2 + gap) / Math.abs(Math.sin(angle) || 1e-9);
    const far = Math.min(across, down);
    return [at[0] + way * Math.cos(angle) * far, at[1] + way * Math.sin(angle) * far];
  };
  const [x0, y0] = reach(from, 6);
  const [x1, y1] = reach(to, 10, -1);
  return { x0, y0, x1, y1, angle };
}

const isTwoWay = (flow, flows) => flows.some((other) => other.source === flow.target && other.target === flow.source);

/** The line of a flow, beside that of the flow back if there is one. */
function lineOf(flow, layout, flows) {
  const line = ends(flow, layout);
  const flat = Math.abs(Math.sin(line.angle)) < 0.2;
  const twoWay = isTwoWay(flow, flows);
  const by = twoWay ? (flat ? -14 : 8) : 0;
  const [dx, dy] = [-Math.sin(line.angle) * by, Math.cos(line.angle) * by];
  return { ...line, flat, twoWay, x0: line.x0 + dx, y0: line.y0 + dy, x1: line.x1 + dx, y1: line.y1 + dy };
}

function Edge({ flow, layout, flows }) {
  const line = lineOf(flow, layout, flows);
  const thick = Math.max(1.5, Math.min(6, 1 + Math.log2(1 + (flow.bytes_per_second ?? 0) / 6e6)));
  const colour = `var(--${COLOURS[flow.state] ?? "text-3"})`;
  const stop = [line.x1 - Math.cos(line.angle) * 9, line.y1 - Math.sin(line.angle) * 9];
  return html`<path d=${`M${line.x0} ${line.y0}L${stop[0]} ${stop[1]}`} stroke=${colour} stroke-width=${thick.toFixed(1)} stroke-dasharray=${flow.state === "idle" ? "4 5" : undefined} />
    <path d="M-12 -7L4 0L-12 7Z" transform=${`translate(${line.x1} ${line.y1}) rotate(${(line.angle * 180) / Math.PI})`} fill=${colour} />`;
}

function Label({ flow, layout, flows }) {
  const line = lineOf(flow, layout, flows);
  const middle = [(line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2];
  const toLeft = Math.cos(line.angle) > 0;
  const side = line.flat ? (line.twoWay ? (toLeft ? "over" : "under") : "on") : toLeft ? "left" : "right";
  const beside = 34 + Math.max(0, 40 * (Math.abs(1 / Math.tan(line.angle)) - 0.9)); // flat lines pass below the words
  const [x, y] = { over: [0, -4], under: [0, 4], on: [0, 21], left: [-beside, 6], right: [beside, 6] }[side];
  const style = { left: `${middle[0] + x}px`, top: `${middle[1] + y}px` };
  const lag = known(flow.seconds_behind) ? `${plain(duration(flow.seconds_behind))} behind` : "lag unknown";
  return html`<a class="edge ${side}" style=${style} href=${flowLink(flow.flow)}>
    <span class="sr">${flow.source} to ${flow.target}: </span><${State} of=${flow.state} word=${flow.word} />
    <span class="lines"><span><${Quantity} of=${[[megabytes(flow.bytes_per_second ?? 0), "MB/s"]]} /></span>
      <span class=${flow.seconds_behind > LATE_SECONDS ? "bold" : ""}>${lag}</span>
      <span>${known(flow.heartbeat_age_seconds) ? `heartbeat ${plain(duration(flow.heartbeat_age_seconds))} ago` : "no heartbeats"}</span></span></a>`;
}

function Cluster({ of, at }) {
  const [icon, tone] = CLUSTER_ICONS[of.state] ?? CLUSTER_ICONS.unknown;
  const brokers = known(of.brokers_reachable) ? `${of.brokers_reachable} of ${of.brokers_known} brokers` : "brokers unknown";
  return html`<div class="cluster" style=${{ left: `${at[0]}px`, top: `${at[1]}px` }} title=${of.reason || of.unknown?.brokers_reachable || ""}>
    <b class="cut">${of.alias}</b><span><${Icon} name=${icon} tone=${tone} />${brokers}</span></div>`;
}
