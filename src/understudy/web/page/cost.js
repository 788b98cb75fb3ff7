// What protection takes, beside the work alone and beside copying everything.

import { html } from "./vendor/lit-html.js";
import { basics, draw } from "./charts.js";
import { bytes, colour, count, seconds } from "./format.js";

export const title = "Cost";

const SHOWN = { s: seconds, bytes, nodes: count };

export function template({ view }) {
  return html`
    <section class="card">
      <h2>Spent on protection</h2>
      <p class="quiet">"None" is the work of the primaries alone; "always active" would do all of it twice. Both are estimates from what the primaries do now; CPU that a node does not divide among its replicas counts as work.</p>
      <div class="chart low" id="costs"></div>
      <table id="cost-table">
        <tr><th>resource</th><th class="number">none</th><th class="number">now</th><th class="number">always active</th><th class="number">protection adds</th></tr>
        ${view.costs.map((line) => {
          const shown = SHOWN[line.unit] ?? count;
          const added = line.none > 0 ? `${Math.round((100 * (line.now - line.none)) / line.none)} %` : "–";
          return html`<tr data-cost=${line.resource}><td>${line.resource}</td><td class="number">${shown(line.none)}</td>
            <td class="number">${shown(line.now)}</td><td class="number">${shown(line.always_active)}</td><td class="number">${added}</td></tr>`;
        })}
      </table>
    </section>
    <section class="card"><h2>In use by all nodes</h2><div class="chart low" id="usage"></div></section>`;
}

export function after({ view, samples }) {
  const look = basics();
  const share = (line, value) => (line.always_active > 0 ? (100 * value) / line.always_active : 0);
  const bars = [["none", "quiet"], ["now", "accent"], ["always_active", "degraded"]];
  draw("costs", {
    grid: { left: 60, right: 20, top: 34, bottom: 26 },
    tooltip: { ...look.tooltip, trigger: "axis", valueFormatter: (value) => `${value.toFixed(0)} %` },
    legend: { ...look.legend, top: 0 },
    xAxis: { ...look.axis, type: "category", data: view.costs.map((line) => line.resource) },
    yAxis: { ...look.axis, type: "value", name: "% of always active" },
    series: bars.map(([name, tone]) => ({
      name: name.replace("_", " "),
      type: "bar",
      barMaxWidth: 36,
      itemStyle: { color: colour(tone) },
      data: view.costs.map((line) => share(line, line[name])),
    })),
  });
  const began = view.at - view.elapsed_s;
  const line = (name, tone, at, value) => ({
    name,
    type: "line",
    showSymbol: false,
    yAxisIndex: at,
    lineStyle: { color: colour(tone), width: 1.6 },
    itemStyle: { color: colour(tone) },
    data: samples.map((sample) => [sample.at - began, value(sample)]),
  });
  draw("usage", {
    grid: { left: 60, right: 70, top: 34, bottom: 30 },
    tooltip: { ...look.tooltip, trigger: "axis" },
    legend: { ...look.legend, top: 0 },
    xAxis: { ...look.axis, type: "value", min: "dataMin", max: "dataMax", name: "s" },
    yAxis: [
      { ...look.axis, type: "value", name: "cores", min: 0 },
      { ...look.axis, type: "value", name: "MB", min: 0, splitLine: { show: false } },
    ],
    series: [line("CPU", "accent", 0, (one) => one.cores), line("memory", "tentative", 1, (one) => one.memory_bytes / 1e6)],
  });
}
