// What happened, on the same time axis as throughput and latency; every event knows its cause.

import { html } from "./vendor/lit-html.js";
import { repeat } from "./vendor/directives/repeat.js";
import { basics, draw } from "./charts.js";
import { colour, seconds, words } from "./format.js";

export const title = "Timeline";

const LANES = ["run", "roll-back", "recovered", "transition", "switch", "reaction", "detection", "fault"];
const LANE_OF = {
  fault: "fault", node_lost: "detection", domain_lost: "detection", diverged: "detection", unprotected: "detection", checkpoint_damaged: "detection",
  assigned: "reaction", promoted: "reaction", secondary: "reaction", drain: "reaction", drained: "reaction",
  standing_in: "reaction", throttled: "reaction", stood_in: "recovered", branch: "reaction", tentative: "reaction", corrected: "recovered",
  switched: "switch", decision: "switch", plan: "switch", protection: "transition", recovered: "recovered", rolled_back: "roll-back",
};
const TONES = { fault: "down", detection: "catching_up", reaction: "accent", recovered: "healthy", switch: "tentative", transition: "tentative", "roll-back": "degraded", run: "quiet" };
const BAD = new Set(["fault", "node_lost", "domain_lost", "diverged", "failed", "unprotected", "ship_failed", "checkpoint_damaged"]);
const GOOD = new Set(["recovered", "promoted", "stood_in", "rolled_back", "finished", "shipped_again", "corrected"]);
const LISTED = 100;

export function template(model) {
  const { view, events, marked } = model;
  const began = view.at - view.elapsed_s;
  return html`
    <section class="card"><div class="chart" id="timeline" style="height: 520px"></div></section>
    <section class="card"><h2>Events</h2>${list(events.slice(-LISTED).toReversed(), began, marked, (number) => model.mark(number))}</section>`;
}

export function list(events, began, marked, mark) {
  return html`<div class="events"><table>
    <tr><th>number</th><th>at</th><th>kind</th><th>what</th><th>cause</th></tr>
    ${repeat(
      events,
      (event) => event.number,
      (event) => html`<tr data-event=${event.number} data-kind=${event.kind} class=${event.number === marked ? "marked" : ""}>
        <td>${event.number}</td><td>${(event.at - began).toFixed(2)} s</td>
        <td class="kind ${BAD.has(event.kind) ? "bad" : GOOD.has(event.kind) ? "good" : ""}">${words(event.kind)}</td>
        <td>${event.text}</td>
        <td>${event.cause === null ? "" : html`<a class="cause" data-cause=${event.cause} @click=${() => mark(event.cause)}>${event.cause}</a>`}</td>
      </tr>`,
    )}
  </table></div>`;
}

export function after({ view, events, samples }) {
  const look = basics();
  const began = view.at - view.elapsed_s;
  const axis = { ...look.axis, type: "value", min: "dataMin", max: "dataMax" };
  const points = samples.map((sample) => [sample.at - began, sample]);
  const line = (name, at, tone, data) => ({
    name, type: "line", xAxisIndex: at, yAxisIndex: at, showSymbol: false, connectNulls: true, data,
    lineStyle: { color: colour(tone), width: 1.6 }, itemStyle: { color: colour(tone) },
  });
  const first = points.length ? points[0][0] : 0;
  const last = points.length ? points.at(-1)[0] : 1;
  const shown = events.filter((event) => event.at - began >= first);
  const ends = { min: first, max: last };
  draw("timeline", {
    grid: [
      { left: 80, right: 24, top: 34, height: 110 },
      { left: 80, right: 24, top: 190, height: 90 },
      { left: 80, right: 24, top: 318, height: 140 },
    ],
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    dataZoom: [{ type: "inside", xAxisIndex: [0, 1, 2] }, { type: "slider", xAxisIndex: [0, 1, 2], bottom: 4, height: 18, textStyle: { color: look.quiet } }],
    tooltip: { ...look.tooltip, trigger: "item", formatter: (point) => tip(point, events) },
    xAxis: [0, 1, 2].map((at) => ({ ...axis, ...ends, gridIndex: at, axisLabel: { show: at === 2, color: look.quiet, formatter: (v) => `${Math.round(v)} s` }, splitLine: { show: false } })),
    yAxis: [
      { ...look.axis, gridIndex: 0, type: "value", name: "rows/s", min: 0, splitNumber: 3 },
      { ...look.axis, gridIndex: 1, type: "value", name: "latency, s", min: 0, splitNumber: 3 },
      { ...look.axis, gridIndex: 2, type: "category", data: LANES, splitLine: { show: true, lineStyle: { color: colour("line") } } },
    ],
    series: [
      line("throughput", 0, "accent", points.map(([x, sample]) => [x, sample.rows_per_s])),
      line("latency", 1, "catching_up", points.map(([x, sample]) => [x, sample.latency_s])),
      // One series a lane and plain numbers, so that nothing is kept per point.
      ...LANES.map((lane, at) => ({
        name: lane, type: "scatter", xAxisIndex: 2, yAxisIndex: 2, symbolSize: 9,
        itemStyle: { color: colour(TONES[lane]) },
        data: shown.filter((event) => (LANE_OF[event.kind] ?? "run") === lane).map((event) => [event.at - began, at, event.number]),
      })),
    ],
  });
}

function tip({ data, seriesType }, events) {
  const element = document.createElement("div");
  const event = seriesType === "scatter" && events.find((one) => one.number === data[2]);
  element.textContent = event
    ? `#${event.number} ${words(event.kind)}: ${event.text}${event.cause === null ? "" : ` (because of #${event.cause})`}`
    : `${seconds(data[0])}: ${data[1]}`;
  return element;
}
