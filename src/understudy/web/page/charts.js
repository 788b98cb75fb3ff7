// ECharts in places that templates come and go with: found by id after every rendering, disposed of when gone.

import { colour } from "./format.js";

const charts = new Map();

export function draw(id, option, form = "") {
  const place = document.getElementById(id);
  if (!place) return;
  let known = charts.get(id);
  if (known && known.place !== place) {
    known.chart.dispose();
    known = undefined;
  }
  if (!known) {
    known = { place, chart: window.echarts.init(place), shape: "" };
    charts.set(id, known);
  }
  // Merging keeps a zoom that somebody chose; another number of series needs a fresh start.
  const shape = JSON.stringify([form, option.series.map((one) => one.name)]);
  if (known.shape && known.shape !== shape) known.chart.resize();
  known.chart.setOption({ animation: false, ...option }, { notMerge: shape !== known.shape });
  known.shape = shape;
}

export function tidy() {
  for (const [id, known] of charts) {
    if (!known.place.isConnected) {
      known.chart.dispose();
      charts.delete(id);
    }
  }
}

// Colours are read anew: the theme may have changed.
export function redraw() {
  for (const [id, known] of charts) {
    known.chart.dispose();
    charts.delete(id);
  }
}

export function size() {
  return charts.size;
}

export function basics() {
  const quiet = colour("quiet");
  const line = { lineStyle: { color: colour("line") }, onZero: false };
  return {
    text: colour("text"),
    quiet,
    axis: { axisLabel: { color: quiet }, axisLine: line, splitLine: line, nameTextStyle: { color: quiet } },
    tooltip: {
      backgroundColor: colour("card"),
      borderColor: colour("line"),
      textStyle: { color: colour("text") },
      confine: true,
    },
    legend: { textStyle: { color: colour("text") }, inactiveColor: quiet },
  };
}

addEventListener("resize", () => charts.forEach(({ chart }) => chart.resize()));
