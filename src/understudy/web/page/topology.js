// The operator graph: boxes in columns, every slice with its scheme, epoch, lag and health.

import { html, svg, nothing } from "./vendor/lit-html.js";
import { words } from "./format.js";
import { list } from "./timeline.js";

export const title = "Topology";

export const HEALTH = {
  healthy: "works, and is protected as wanted",
  starting: "starts for the first time",
  degraded: "works, but is protected less than wanted, or its secondary stands in",
  catching_up: "is back, and replays what it had done",
  tentative: "gives provisional output, corrected later",
  down: "does not work: its node is gone, or it is being brought back",
};

export function legend() {
  return html`<ul class="legend" aria-label="legend">
    ${Object.entries(HEALTH).map(
      ([name, text]) => html`<li><span class="health" data-health=${name}>${words(name)}</span> <span class="quiet">${text}</span></li>`,
    )}
  </ul>`;
}

const LATELY = 8;

export function template(model) {
  const { plan, view, events } = model;
  if (!plan) return html`<p class="quiet">Waiting for the manager.</p>`;
  const slices = Map.groupBy(view.slices, (entry) => entry.slice.replace(/\[\d+\]$/, ""));
  const last = Math.max(0, ...plan.vertices.map((vertex) => vertex.column));
  const columns = Array.from({ length: last + 1 }, (_, at) => plan.vertices.filter((vertex) => vertex.column === at));
  return html`
    ${legend()}
    ${view.branch ? branch(view.branch) : nothing}
    <div class="card graph" id="graph">
      <svg id="edges" aria-hidden="true"></svg>
      ${columns.map((column) => html`<div class="column">${column.map((one) => box(one, slices.get(one.name) ?? []))}</div>`)}
    </div>
    <section class="card"><h2>Lately</h2>${list(events.slice(-LATELY).toReversed(), view.at - view.elapsed_s, model.marked, model.mark)}</section>`;
}

// What sinks get while slices are missing, and how far the stable output is behind it.
function branch(open) {
  const without = open.missing.length ? `without ${open.missing.join(", ")}` : "nothing is missing any more: the stable output catches up";
  const fidelity = open.fidelity !== null && open.missing.length ? `, predicted fidelity ${open.fidelity.toFixed(2)}` : "";
  return html`<section class="card slice" id="branch" data-health="tentative" role="status">
    <b>Tentative output</b> for ${Math.round(open.open_s)} s, ${without}${fidelity}
    ${Object.entries(open.tentative).map(([sink, epoch]) => html`<small>${sink}: epoch ${epoch} tentative, ${open.stable[sink] - 1} stable</small>`)}
  </section>`;
}

function box(vertex, slices) {
  const fused = vertex.parts.length > 1 ? vertex.parts.join(" + ") : "";
  const notes = [vertex.kind, vertex.stateful ? "keeps state" : "", fused].filter(Boolean).join(", ");
  return html`<section class="vertex" data-vertex=${vertex.name}>
    <header><b>${vertex.name}</b><small>${notes}</small></header>
    ${slices.length ? slices.map(row) : html`<div class="slice"><small>${vertex.slices} slices, not placed yet</small></div>`}
  </section>`;
}

function row(entry) {
  const short = entry.protection && entry.protection !== entry.scheme;
  return html`<div class="slice" data-slice=${entry.slice} data-health=${entry.health} title=${entry.why}>
    <div class="row"><b>${entry.slice}</b><span class="health" data-health=${entry.health}>${words(entry.health)}</span></div>
    <small>${words(entry.scheme || entry.kind)}${short ? html` <i>(has ${words(entry.protection)})</i>` : nothing}</small>
    <div class="row">
      <small>${entry.primary || "no node"}${entry.secondary ? `, ${entry.secondary} stands ${entry.standing_in ? "in" : "by"}` : ""}</small>
      <small>${entry.epoch < 0 ? "no epoch yet" : `epoch ${entry.epoch}${entry.lag ? `, ${entry.lag} behind` : ""}`}</small>
    </div>
  </div>`;
}

// Edges follow the boxes, so they are drawn once these have their place.
export function after({ plan }, renderInto) {
  const graph = document.getElementById("graph");
  const canvas = document.getElementById("edges");
  if (!graph || !plan) return;
  const origin = graph.getBoundingClientRect();
  const places = new Map(
    [...graph.querySelectorAll("[data-vertex]")].map((element) => [element.dataset.vertex, element.getBoundingClientRect()]),
  );
  const shift = { x: graph.scrollLeft - origin.left, y: graph.scrollTop - origin.top };
  renderInto(
    plan.edges.map((edge) => path(places.get(edge.upstream), places.get(edge.reader), edge.how, shift)),
    canvas,
  );
}

function path(from, to, how, shift) {
  if (!from || !to) return nothing;
  const [x1, y1] = [from.right + shift.x, from.top + from.height / 2 + shift.y];
  const [x2, y2] = [to.left + shift.x, to.top + to.height / 2 + shift.y];
  const middle = (x1 + x2) / 2;
  return svg`<path d="M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2 - 6},${y2} m-6,-4 l6,4 l-6,4"></path>
    <text x=${middle} y=${(y1 + y2) / 2 - 6}>${how}</text>`;
}
