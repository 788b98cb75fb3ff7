// The shell: one model, one rendering per frame at most, one view at a time.

import { html, nothing, render } from "./vendor/lit-html.js";
import * as charts from "./charts.js";
import * as cost from "./cost.js";
import { follow } from "./feed.js";
import { count, forgetColours, seconds } from "./format.js";
import * as nodes from "./nodes.js";
import * as recovery from "./recovery.js";
import * as timeline from "./timeline.js";
import * as topology from "./topology.js";
import * as tryit from "./tryit.js";

const VIEWS = { topology, nodes, recovery, cost, timeline, tryit };
const THEMES = ["", "light", "dark"];

const model = {
  view: null, plan: null, events: [], samples: [], recoveries: [],
  connection: "opening", token: takeToken(), marked: null, attempt: null, asked: null, freeze: 3,
  changed, mark, keepToken,
};
let waiting = false;

// An address may bring the token behind '#'; browsers do not send that part, and it is taken off at once.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search + "#topology");
  }
  return given || sessionStorage.getItem("token") || "";
}

function keepToken(token) {
  model.token = token;
  sessionStorage.setItem("token", token);
  changed();
}

function mark(number) {
  model.marked = number;
  changed();
  document.querySelector(`[data-event="${number}"]`)?.scrollIntoView({ block: "nearest" });
}

function changed() {
  if (waiting) return;
  waiting = true;
  // A hidden page renders nothing, and catches up when it is shown.
  requestAnimationFrame(() => {
    waiting = false;
    show();
  });
}

function current() {
  const name = location.hash.slice(1);
  return VIEWS[name] && (name !== "tryit" || model.view?.allow_faults) ? name : "topology";
}

function show() {
  const name = current();
  render(shell(name), document.body);
  charts.tidy();
  if (model.view) VIEWS[name].after?.(model, (parts, place) => render(parts, place));
  document.title = model.view ? `${model.view.app} · understudy` : "understudy";
}

function shell(name) {
  const { view } = model;
  return html`
    ${banner()}
    <header>
      <h1>${view ? view.app : "understudy"}</h1>
      ${view ? facts(view) : nothing}
      <span class="spread"></span>
      <button id="theme" title="light, dark, or as the system says" @click=${turnTheme}>${localStorage.getItem("theme") || "auto"}</button>
    </header>
    <nav>
      ${Object.entries(VIEWS)
        .filter(([key]) => key !== "tryit" || view?.allow_faults)
        .map(([key, one]) => html`<a href="#${key}" aria-current=${key === name ? "page" : nothing}>${one.title}</a>`)}
    </nav>
    <main data-view=${name}>${view ? VIEWS[name].template(model) : html`<p class="quiet">Waiting for the manager.</p>`}</main>`;
}

function facts(view) {
  const unwell = view.slices.filter((entry) => entry.health !== "healthy").length;
  const goal = view.goal === null ? "" : ` of ${count(view.goal)}`;
  return html`
    <span class="fact" id="phase"><b>${view.phase}</b></span>
    <span class="fact">epoch <b>${count(view.epoch)}</b>${goal}</span>
    <span class="fact"><b>${count(view.rows_per_s)}</b> rows/s</span>
    <span class="fact">latency <b>${seconds(view.latency_s)}</b></span>
    <span class="fact"><b>${view.slices.length}</b> slices${unwell ? html`, <b>${unwell}</b> not healthy` : ""}</span>
    <span class="fact"><b>${view.nodes.filter((node) => node.connected && node.ready).length}</b> nodes</span>
    <span class="fact quiet">${seconds(view.elapsed_s)}</span>`;
}

function banner() {
  const { connection, view } = model;
  if (connection === "refused") return html`<div class="banner">The manager wants its token: open the page with #token=… behind its address.</div>`;
  if (connection === "closed") return html`<div class="banner mild" id="offline">The manager does not answer; what you see is old. Trying again.</div>`;
  if (view?.failure) return html`<div class="banner" id="failure">${view.failure.what}: ${view.failure.why}. ${view.failure.fix}</div>`;
  return nothing;
}

function applyTheme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") || "";
}

function turnTheme() {
  const at = THEMES.indexOf(localStorage.getItem("theme") || "");
  localStorage.setItem("theme", THEMES[(at + 1) % THEMES.length]);
  applyTheme();
  repaint();
}

function repaint() {
  forgetColours();
  charts.redraw();
  changed();
}

addEventListener("hashchange", changed);
addEventListener("resize", changed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
applyTheme();
changed();
follow(model, changed);
// For tests of how much a page keeps.
window.understudy = { model, charts };
