// Faults on demand, and what follows from them. Shown only in runs that allow it.

import { html, nothing } from "./vendor/lit-html.js";
import { stateOf } from "./nodes.js";
import { list } from "./timeline.js";
import { words } from "./format.js";

export const title = "Try it";

const VERBS = {
  kill: { text: "Kill", grave: true, question: (node) => `Kill ${node}? Its processes and its local disk are gone at once, as in a power cut.` },
  freeze: { text: "Freeze", grave: false, question: (node, s) => `Freeze ${node} for ${s} s? It stops, and then goes on as if nothing had happened.` },
  drain: { text: "Drain", grave: false, question: (node) => `Drain ${node}? Its slices move away without interruption, and it gets no new ones.` },
  undo: { text: "Undo drain", grave: false, question: (node) => `Let ${node} take slices again?` },
};

export function template(model) {
  const { view, attempt } = model;
  const began = view.at - view.elapsed_s;
  const followed = attempt?.number ? model.events.filter((event) => event.number >= attempt.number) : [];
  return html`
    ${model.token ? nothing : tokenField(model)}
    <section class="card wide"><h2>Nodes</h2>
      <p>Freeze for <input id="length" type="number" min="1" max="600" .value=${String(model.freeze)} @change=${(e) => (model.freeze = Number(e.target.value) || 3)}> seconds</p>
      <table>
        ${view.nodes.map((node) => row(model, node))}
        ${view.lost.map((name) => html`<tr><td><b>${name}</b></td><td><span class="health" data-health="down">lost</span></td><td></td><td></td></tr>`)}
      </table>
    </section>
    <section class="card"><h2>Slices now</h2>
      <div class="chips">${view.slices.map((entry) => html`<span class="chip health" data-chip=${entry.slice} data-health=${entry.health} title=${entry.why}>${entry.slice} ${words(entry.health)}</span>`)}</div>
    </section>
    ${attempt
      ? html`<section class="card"><h2>What follows</h2>
          <p id="attempt" class=${attempt.error ? "kind bad" : ""}>${attempt.error ?? `${words(attempt.verb)} ${attempt.node}`}</p>
          ${list(followed, began, model.marked, (number) => model.mark(number))}</section>`
      : nothing}
    <dialog id="confirm">
      <p>${model.asked ? VERBS[model.asked.verb].question(model.asked.node, model.freeze) : ""}</p>
      <menu>
        <button @click=${() => close(model)}>Leave it</button>
        <button class="grave" id="do-it" @click=${() => act(model)}>${model.asked ? VERBS[model.asked.verb].text : ""}</button>
      </menu>
    </dialog>`;
}

function tokenField(model) {
  return html`<section class="card"><h2>Token</h2>
    <p>Commands need the content of the file <code>token</code> in the run's home directory.</p>
    <form @submit=${(e) => { e.preventDefault(); model.keepToken(new FormData(e.target).get("token").trim()); }}>
      <input name="token" type="password" autocomplete="off" aria-label="token"> <button>Use it</button>
    </form></section>`;
}

function row(model, node) {
  const [tone, word] = stateOf(node);
  const verbs = ["kill", "freeze", node.draining ? "undo" : "drain"];
  const leads = node.replicas.filter((replica) => replica.primary).length;
  return html`<tr data-try=${node.name}>
    <td><b>${node.name}</b></td>
    <td><span class="health" data-health=${tone}>${word}</span></td>
    <td>${leads} primary, ${node.replicas.length - leads} secondary</td>
    <td>${verbs.map(
      (verb) => html`<button class=${VERBS[verb].grave ? "grave" : ""} data-verb=${verb} ?disabled=${!model.token || !node.connected}
        @click=${() => ask(model, verb, node.name)}>${VERBS[verb].text}</button> `,
    )}</td>
  </tr>`;
}

function ask(model, verb, node) {
  model.asked = { verb, node };
  model.changed();
  document.getElementById("confirm").showModal();
}

function close(model) {
  document.getElementById("confirm").close();
  model.changed();
}

async function act(model) {
  const { verb, node } = model.asked;
  close(model);
  model.attempt = { verb, node };
  const path = `api/v1/nodes/${encodeURIComponent(node)}/${verb === "undo" ? "drain" : verb}`;
  const body = { kill: {}, freeze: { seconds: model.freeze }, drain: { undo: false }, undo: { undo: true } }[verb];
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${model.token}` },
      body: JSON.stringify(body),
    });
    const said = await answer.json();
    model.attempt = answer.ok ? { verb, node, number: said.number } : { verb, node, error: String(said.detail) };
    if (answer.status === 401) model.keepToken("");
  } catch (error) {
    model.attempt = { verb, node, error: `the manager does not answer: ${error.message}` };
  }
  model.changed();
}
