// Numbers as people read them.

export function count(value) {
  return value >= 1e6 ? `${(value / 1e6).toFixed(1)} M` : Math.round(value).toLocaleString("en");
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${value.toFixed(at === 0 || value >= 100 ? 0 : 1)} ${units[at]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function words(name) {
  return name.replaceAll("_", " ");
}

// One colour of the style sheet, as charts need it; asked once per theme, because asking costs a layout.
const colours = new Map();

export function colour(name) {
  if (!colours.has(name)) colours.set(name, probed(name));
  return colours.get(name);
}

export function forgetColours() {
  colours.clear();
}

function probed(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
