// The queues of a step over time: what computes, what is copied, what waits.

const queueHeight = 18;
const phases = ["forward", "backward", "update"];
const phaseOpacity = {
  forward: 0.85,
  backward: 0.5,
  update: 0.3
};
const roleNames = {
  compute: "compute",
  copy_in: "copies in",
  copy_out: "copies out",
  collective: "exchanges"
};

/// One path for all spans of a kind, so that thousands are few elements.
function spansPath(queue, end, isShown) {
  let path = "", last = -1;
  queue.start_ms.forEach((start, i) => {
    if (!isShown(i)) return;
    const left = 1000 * start / end, right = Math.max(1000 * queue.end_ms[i] / end, left + 0.5);
    if (right - last < 0.25) return;  // drawn already
    last = right;
    path += `M${left.toFixed(2)} 1H${right.toFixed(2)}V${queueHeight - 1}H${left.toFixed(2)}Z`;
  });
  return path;
}

/// Spans of an operator of the selection; `path` of a span is that of its operator or parameter.
function isSelectedPath(path) {
  const part = store.tree.byPath.get(path);
  return Boolean(part && store.selection && store.selection.parent && isInside(part, store.selection));
}

function queueSpans(queue, end) {
  const spans = (kind, opacity, isShown) => shape(
    "path", {class: `span ${kind}`, style: {"fill-opacity": opacity}, d: spansPath(queue, end, isShown)});
  const drawn = queue.role === "compute"
    ? phases.map(phase => spans("compute", phaseOpacity[phase], i => (queue.phase[i] || "forward") === phase))
    : [
        spans("hidden-copy", 0.8, i => !(queue.exposed_ms[i] > 0)),
        spans("exposed-copy", 1, i => queue.exposed_ms[i] > 0)
      ];
  return [
    drawn, shape("path", {class: "span chosen", d: spansPath(queue, end, i => isSelectedPath(queue.path[i]))})
  ];
}

function queueRow(queue, end) {
  const facts =
    [`busy ${msText(queue.busy_ms)}`, queue.waiting_ms > 0 ? `waiting ${msText(queue.waiting_ms)}` : ""]
      .filter(Boolean)
      .join(", ");
  return element(
    "div", {class: "queue", style: {"--c": deviceColour(queue.device)}},
    element(
      "span", {class: "queue-name"}, dotOf(queue.device),
      element("span", {}, `${queue.device} ${roleNames[queue.role] || queue.role}`),
      element("small", {}, facts)),
    element(
      "div", {class: "plot"},
      shape(
        "svg", {viewBox: `0 0 1000 ${queueHeight}`, preserveAspectRatio: "none", "aria-hidden": "true"},
        queueSpans(queue, end))));
}

/// Where backward and update begin, by the queues that compute.
function phaseMarks(queues, end) {
  const begins = {};
  for (const queue of queues.filter(one => one.role === "compute")) {
    queue.phase.forEach(
      (phase, i) => { begins[phase] = Math.min(begins[phase] ?? Infinity, queue.start_ms[i]); });
  }
  let last = -1;
  return phases.filter(phase => begins[phase] !== undefined).map(phase => {
    const part = begins[phase] / end, fits = last < 0 || part - last > 0.12;
    if (!fits || part > 0.92) return null;
    last = part;
    return element("span", {class: "phase-mark", style: {left: `${100 * part}%`}}, phase);
  });
}

function timeAxis(end) {
  const rough = end / 5, unit = 10 ** Math.floor(Math.log10(rough)),
        every = [1, 2, 5, 10].find(one => one * unit >= rough) * unit;
  const ticks = [];
  for (let ms = 0; ms <= end * 0.97; ms += every)
    ticks.push(element("span", {style: {left: `${100 * ms / end}%`}}, numberText(ms)));
  return element(
    "div", {class: "time-axis", "aria-hidden": "true"}, ticks, element("span", {class: "unit"}, "ms"));
}

/// What each queue does at a time: [queue name, text].
function spansAt(queues, ms) {
  return queues.map(queue => {
    const i = queue.start_ms.length ? pointAt(queue.start_ms, ms) : -1;
    const runs = i >= 0 && queue.start_ms[i] <= ms && queue.end_ms[i] >= ms;
    const bytes = runs && queue.bytes[i] ? `, ${bytesText(queue.bytes[i])}` : "";
    const exposed = runs && queue.exposed_ms[i] > 0 ? `, exposed ${msText(queue.exposed_ms[i])}` : "";
    return {
      queue,
      path: runs ? queue.path[i] : "",
      text: runs ? `${queue.op[i]} ${queue.path[i]}${bytes}${exposed}` : "idle"
    };
  });
}
