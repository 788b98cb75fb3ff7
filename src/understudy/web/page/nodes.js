// Nodes by domain, with the replicas they host.

import { html } from "./vendor/lit-html.js";
import { bytes, seconds } from "./format.js";

export const title = "Nodes";

export function template({ view }) {
  const domains = Map.groupBy(view.nodes, (node) => node.domain || "");
  const health = new Map(view.slices.map((entry) => [entry.slice, entry.health]));
  return html`
    <p class="quiet">A solid frame is a primary, a dashed one a secondary that stands by. Nodes of a domain can fail together.</p>
    ${[...domains].sort().map(
      ([domain, nodes]) => html`<h2>${domain ? `domain ${domain}` : "each node is a domain of its own"}</h2>
        <div class="domains">${nodes.map((node) => card(node, health))}</div>`,
    )}
    ${view.lost.length
      ? html`<h2>Lost</h2><div class="domains">${view.lost.map(
          (name) => html`<section class="card node" data-node=${name} data-state="gone"><b>${name}</b> <span class="health" data-health="down">lost</span></section>`,
        )}</div>`
      : ""}`;
}

export function stateOf(node) {
  if (!node.connected) return ["down", "disconnected"];
  if (node.drained) return ["degraded", "drained"];
  if (node.draining) return ["degraded", "draining"];
  return node.ready ? ["healthy", "ready"] : ["starting", "starting"];
}

function card(node, health) {
  const [tone, word] = stateOf(node);
  const state = tone === "down" ? "gone" : node.draining ? "draining" : "well";
  return html`<section class="card node" data-node=${node.name} data-state=${state}>
    <b>${node.name}</b> <span class="health" data-health=${tone}>${word}</span>
    <div class="quiet">${node.cores.toFixed(2)} cores · ${bytes(node.memory_bytes)} · last heartbeat ${seconds(node.silent_s)} ago</div>
    <div class="chips">
      ${node.replicas.length ? "" : html`<span class="quiet">hosts nothing</span>`}
      ${node.replicas.map(
        (replica) => html`<span class="chip ${replica.primary ? "primary" : "secondary"}"
          data-health=${replica.primary ? (health.get(replica.slice) ?? "") : ""}
          title="${replica.primary ? "primary" : "secondary"}, ${replica.state}, epoch ${replica.epoch}">${replica.slice}</span>`,
      )}
    </div>
  </section>`;
}
