// The live connection: told everything at first, then what is new; comes back by itself.

const KEPT_EVENTS = 500;
const KEPT_SAMPLES = 1200;
const LONGEST_WAIT_MS = 5000;

export function merge(model, frame) {
  const whole = frame.kind === "everything";
  model.view = frame.view;
  model.events = (whole ? frame.events : model.events.concat(frame.events)).slice(-KEPT_EVENTS);
  model.samples = (whole ? frame.samples : model.samples.concat(frame.samples)).slice(-KEPT_SAMPLES);
  model.recoveries = frame.recoveries ?? model.recoveries;
  model.plan = frame.plan ?? model.plan;
}

export function follow(model, changed) {
  let wait = 250;

  function open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/live`);
    socket.onopen = () => socket.send(JSON.stringify({ token: model.token }));
    socket.onmessage = (message) => {
      wait = 250;
      model.connection = "open";
      merge(model, JSON.parse(message.data));
      changed();
    };
    socket.onclose = (event) => {
      model.connection = event.code === 1008 ? "refused" : "closed";
      changed();
      setTimeout(open, wait);
      wait = Math.min(LONGEST_WAIT_MS, wait * 2);
    };
  }

  open();
}
