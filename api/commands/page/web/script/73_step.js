// One step over time: memory above the queues, with one cursor through both.

const stepView = {
  revision: -1,
  timeline: null,
  error: null,
  at: null,
  memory: []
};

/// The same spans on a clock that begins with the first kernel. What ran before it, for this step,
/// was hidden behind the step before; it is shown where the same happens for the next step.
function fromZero(timeline) {
  const starts = timeline.queues.filter(queue => queue.role === "compute" && queue.start_ms.length)
                   .map(queue => Math.min(...queue.start_ms));
  const origin = starts.length ? Math.min(...starts) : 0, length = timeline.step_ms;
  const queues = timeline.queues.map(queue => {
    const order = queue.start_ms
                    .map((start, i) => {
                      const shift = queue.end_ms[i] <= origin + 1e-9 ? length - origin : -origin;
                      return {i, start: Math.max(0, start + shift), end: queue.end_ms[i] + shift};
                    })
                    .sort((a, b) => a.start - b.start);
    const sorted = key => order.map(one => queue[key][one.i]);
    return {
      ...queue,
      start_ms: order.map(one => one.start),
      end_ms: order.map(one => one.end),
      exposed_ms: sorted("exposed_ms"),
      bytes: sorted("bytes"),
      phase: sorted("phase"),
      op: sorted("op"),
      path: sorted("path")
    };
  });
  return {...timeline, queues};
}

async function fetchTimeline() {
  const wanted = revision();
  try {
    const timeline = await get("timeline");
    if (wanted !== revision()) return;
    Object.assign(stepView, {revision: wanted, timeline: fromZero(timeline), error: null, at: null});
  } catch (error) { Object.assign(stepView, {revision: wanted, timeline: null, error}); }
  if (store.tab === "step") showPanel();
}

/// Tells what is in memory and what runs at the cursor.
function readout(end) {
  if (stepView.at === null)
    return element(
      "p", {class: "quiet"},
      "Point at a time, or move the cursor with ← and →; Enter selects what computes then.");
  const {at, timeline} = stepView;
  const memory = stepView.memory.map(one => {
    const i = pointAt(one.at_ms, at);
    return element(
      "li", {}, deviceTag(one.device), ` ${bytesText(usedAt(one, i))}`,
      element(
        "small", {},
        ` (${memoryKinds.map(([key, name]) => `${name} ${bytesText(one[key][i])}`).join(", ")})`));
  });
  const spans = timeline
    ? spansAt(timeline.queues, at)
        .filter(one => one.text !== "idle")
        .map(
          one => element(
            "li", {}, deviceTag(one.queue.device), ` ${roleNames[one.queue.role] || one.queue.role}: `,
            element("span", {class: "path"}, one.text)))
    : [];
  return [
    element("p", {}, element("b", {}, `${msText(at)} of ${msText(end)}`)), element("ul", {}, memory, spans)
  ];
}

function moveCursor(ms, end) {
  stepView.at = Math.max(0, Math.min(end, ms));
  for (const cursor of document.querySelectorAll("#panel .cursor"))
    cursor.style.left = `${100 * stepView.at / end}%`;
  byId("step-chart").classList.add("has-cursor");
  byId("readout").replaceChildren(...[readout(end)].flat());
}

/// Selects the operator that computes at the cursor.
function selectAtCursor() {
  const found = stepView.timeline &&
    spansAt(stepView.timeline.queues, stepView.at)
      .find(one => one.queue.role === "compute" && store.tree.byPath.get(one.path));
  if (!found) return;
  const part = shownAs(store.tree.byPath.get(found.path));
  reveal(part);
  select(part);
  changed("view");
}

function stepEvents(end) {
  const timeOf = event => {
    const plot = event.currentTarget.querySelector(".plot").getBoundingClientRect();
    return end * (event.clientX - plot.left) / plot.width;
  };
  return {
    pointermove: event => {
      const ms = timeOf(event);
      if (ms >= 0) moveCursor(ms, end);
    },
    click: event => {
      if (timeOf(event) >= 0) selectAtCursor();
    },
    keydown: event => {
      const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
      if (by)
        moveCursor((stepView.at ?? 0) + by * end / 100, end);
      else if (event.key === "Home" || event.key === "End")
        moveCursor(event.key === "Home" ? 0 : end, end);
      else if (event.key === "Enter" && stepView.at !== null)
        selectAtCursor();
      else
        return;
      event.preventDefault();
    },
  };
}

function showStep(panel) {
  const {state} = store;
  if (stepView.revision !== state.revision) fetchTimeline();
  stepView.memory = state.memory || [];
  const timeline = stepView.revision === state.revision ? stepView.timeline : null;
  const end = (timeline && timeline.step_ms) || state.plan.time.step_ms || 1;
  const cursor = () =>
    element("i", {class: "cursor", style: stepView.at === null ? {} : {left: `${100 * stepView.at / end}%`}});
  const charts = stepView.memory.filter(memory => memory.peak > 0).map(memory => memoryChart(memory, end));
  const queues =
    timeline ? timeline.queues.filter(queue => queue.start_ms.length).map(queue => queueRow(queue, end)) : [];
  const chart = element(
    "div", {
      id: "step-chart",
      "data-key": "step-chart",
      class: stepView.at === null ? "" : "has-cursor",
      tabindex: "0",
      role: "application",
      "aria-label": "Memory and queues over one step",
      "aria-describedby": "readout",
      on: stepEvents(end)
    },
    charts,
    timeline && element("div", {class: "phases", "aria-hidden": "true"}, phaseMarks(timeline.queues, end)),
    queues, timeAxis(end));
  for (const plot of chart.querySelectorAll(".plot")) plot.append(cursor());
  refill(
    panel, element("h3", {class: "unseen"}, "One step"), memoryLegend(), chart,
    stepView.error && element("p", {class: "bad"}, stepView.error.message),
    timeline && timeline.part !== "whole step" &&
      element("p", {class: "quiet"}, `${timeline.part}; ${timeline.times} of them in a step`),
    element("div", {id: "readout", "aria-live": "polite"}, readout(end)),
    (state.notes || []).length > 0 &&
      [element("h3", {}, "Notes"), element("ul", {}, state.notes.map(note => element("li", {}, note)))]);
}

function startStep() {
  listen(["selection"], () => {
    if (store.tab === "step" && isPlanned()) showPanel();
  });
}
