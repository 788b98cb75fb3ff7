// The plots of a report that was written to a file; its tables are in the page already.

(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const COLOURS = ["#8a93a3", "#4c78a8", "#72b7b2", "#54a24b", "#b9a52f", "#e07b39", "#b279a2"];
  const style = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  const axis = () => ({ axisLabel: { color: style("quiet") }, nameTextStyle: { color: style("quiet") }, splitLine: { lineStyle: { color: style("line") } } });
  const legend = () => ({ top: 0, textStyle: { color: style("text") } });
  const charts = [];

  function draw(id, option) {
    const place = document.getElementById(id);
    if (!place) return;
    const chart = echarts.init(place);
    chart.setOption({ animation: false, tooltip: { trigger: "axis", confine: true }, ...option });
    charts.push(chart);
  }

  function timeline() {
    const bars = report.faults.flatMap((fault) => fault.recoveries.map((one) => ({ fault, one })));
    if (!bars.length) return;
    const steps = [...new Set(bars.flatMap(({ one }) => Object.keys(one.steps)))];
    draw("timeline", {
      grid: { left: 150, right: 30, top: 40, bottom: 34 },
      legend: { ...legend(), data: steps },
      xAxis: { ...axis(), type: "value", name: "s" },
      yAxis: { ...axis(), type: "category", inverse: true, data: bars.map(({ one, fault }) => `${one.slice} ${fault.spec.split(":")[0]}`) },
      series: [
        { name: "fault at", type: "bar", stack: "all", itemStyle: { color: "transparent" }, data: bars.map(({ fault }) => fault.at_s) },
        ...steps.map((step, at) => ({
          name: step, type: "bar", stack: "all", barMaxWidth: 16,
          itemStyle: { color: COLOURS[at % COLOURS.length] },
          data: bars.map(({ one }) => one.steps[step] ?? 0),
        })),
      ],
    });
  }

  function nodes() {
    const names = Object.keys(report.costs.cpu_s);
    draw("nodes", {
      grid: { left: 60, right: 70, top: 40, bottom: 26 },
      legend: legend(),
      xAxis: { ...axis(), type: "category", data: names },
      yAxis: [{ ...axis(), type: "value", name: "CPU, s" }, { ...axis(), type: "value", name: "MB", splitLine: { show: false } }],
      series: [
        { name: "CPU", type: "bar", barMaxWidth: 30, itemStyle: { color: style("accent") }, data: names.map((name) => report.costs.cpu_s[name]) },
        { name: "peak memory", type: "bar", barMaxWidth: 30, yAxisIndex: 1, itemStyle: { color: style("tentative") }, data: names.map((name) => report.costs.peak_memory_bytes[name] / 1e6) },
      ],
    });
  }

  function rows() {
    const names = Object.keys(report.slices);
    draw("rows", {
      grid: { left: 80, right: 20, top: 40, bottom: 26 },
      legend: legend(),
      xAxis: { ...axis(), type: "category", data: names },
      yAxis: { ...axis(), type: "value", name: "rows" },
      series: ["rows_in", "rows_out"].map((field, at) => ({
        name: field.replace("_", " "), type: "bar", barMaxWidth: 24,
        itemStyle: { color: style(at ? "healthy" : "accent") },
        data: names.map((name) => report.slices[name][field]),
      })),
    });
  }

  timeline();
  nodes();
  rows();
  addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
})();
