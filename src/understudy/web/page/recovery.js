// What recovery would take under every scheme, and what it took.

import { html } from "./vendor/lit-html.js";
import { basics, draw } from "./charts.js";
import { seconds, words } from "./format.js";

export const title = "Recovery";

const SCHEMES = [
  "passive_replication", "deployed", "passive_standby_cold", "passive_standby_hot", "active_standby", "active_replication",
];
const SHOWN = 12;
const LISTED = 50;
const STEPS = ["detect", "deploy", "read_checkpoint", "wire_receive", "wire_send", "replay", "first_bag", "idle"];
const COLOURS = ["#8a93a3", "#4c78a8", "#72b7b2", "#54a24b", "#b9a52f", "#e07b39", "#b279a2", "#d5d9e0"];

export function template({ view, recoveries }) {
  return html`
    <section class="card wide"><h2>Predicted</h2>${predicted(view)}</section>
    <section class="card"><h2>Past recoveries</h2>
      ${recoveries.length
        ? html`<p class="quiet">From the fault, or from its detection where nobody injected one, to the first new epoch. Upper bar predicted, lower bar real.</p>
            <div class="chart" id="past" style="height: ${90 + 44 * Math.min(SHOWN, recoveries.length)}px"></div>
            <div class="events">${table(recoveries)}</div>`
        : html`<p class="quiet" id="no-recoveries">Nothing had to recover yet.</p>`}
    </section>`;
}

function predicted(view) {
  if (!view.predictions.length)
    return html`<p class="quiet" id="no-predictions">Nothing is predicted yet: a slice has to show first how it works.</p>`;
  const chosen = new Map(view.slices.map((entry) => [entry.slice, entry.scheme]));
  const longest = Math.max(...view.predictions.flatMap((one) => [one.objective ?? 0, ...Object.values(one.predicted)]), 0.001);
  return html`<table>
    <tr><th>slice</th><th>objective</th>${SCHEMES.map((name) => html`<th>${words(name)}</th>`)}<th>why</th></tr>
    ${view.predictions.map(
      (one) => html`<tr data-prediction=${one.slice}>
        <td><b>${one.slice}</b></td>
        <td>${one.objective === null ? "none" : seconds(one.objective)}</td>
        ${SCHEMES.map((name) => cell(one, name, chosen.get(one.slice) === name, longest))}
        <td>${one.reason || "–"}</td>
      </tr>`,
    )}
  </table>`;
}

function cell(one, name, chosen, longest) {
  const value = one.predicted[name];
  if (value === undefined) return html`<td class="quiet">–</td>`;
  const over = one.objective !== null && value > one.objective;
  return html`<td class=${chosen ? "chosen" : ""}>${seconds(value)}${chosen ? " ✓" : ""}<br>
    <span class="bar ${over ? "over" : ""}" style="width: ${Math.max(2, (70 * value) / longest)}px"></span></td>`;
}

function table(recoveries) {
  return html`<table>
    <tr><th>slice</th><th>because of</th><th>scheme</th><th class="number">real</th><th class="number">predicted</th><th class="number">epochs replayed</th></tr>
    ${recoveries.slice(-LISTED).toReversed().map(
      (one) => html`<tr data-recovery=${one.number}>
        <td><b>${one.slice}</b></td><td>${one.cause}</td><td>${words(one.scheme) || "–"}</td>
        <td class="number">${seconds(one.total_s)}</td>
        <td class="number">${Object.keys(one.predicted).length ? seconds(sum(one.predicted)) : "–"}</td>
        <td class="number">${one.replayed}</td>
      </tr>`,
    )}
  </table>`;
}

const sum = (steps) => Object.values(steps).reduce((total, value) => total + value, 0);

export function after({ recoveries }) {
  const shown = recoveries.slice(-SHOWN).toReversed();
  if (!shown.length) return;
  const look = basics();
  draw("past", {
    grid: { left: 150, right: 30, top: 40, bottom: 30 },
    tooltip: { ...look.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (value) => seconds(value || 0) },
    legend: { ...look.legend, data: STEPS.map(words), top: 0 },
    xAxis: { ...look.axis, type: "value", name: "s", min: 0 },
    yAxis: { ...look.axis, type: "category", inverse: true, data: shown.map((one) => `${one.slice} #${one.number}`) },
    series: ["predicted", "steps"].flatMap((kind) =>
      STEPS.map((step, at) => ({
        name: words(step),
        type: "bar",
        stack: kind,
        barMaxWidth: 14,
        itemStyle: { color: COLOURS[at], opacity: kind === "predicted" ? 0.5 : 1 },
        data: shown.map((one) => one[kind][step] ?? 0),
      })),
    ),
  }, shown.length);
}
