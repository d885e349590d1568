// Times that a run measured, next to those that the cost model predicts.

const measured = {
  answer: null,
  error: null,
  asked: false
};

async function fetchMeasured() {
  measured.asked = true;
  try {
    measured.answer = await get("measured");
  } catch (error) { measured.error = error; }
  showInspector();
  if (store.tab === "measured") showPanel();
}

const msOfItem = item => item ? (item.forward_ms || 0) + (item.backward_ms || 0) + (item.update_ms || 0) : 0;

/// Measured milliseconds of all that is inside a part; 0 without a run.
function measuredAt(part) {
  if (!measured.answer) return 0;
  return part.inside.reduce((sum, one) => sum + msOfItem(measured.answer.by_item[one.id]), 0);
}

/// Modules of the first level, and below those that are unfolded.
function comparedParts() {
  return visibleRows()
    .filter(part => part.parent && !isStored(part) && (totalsAt(part).sum.ms > 0 || measuredAt(part) > 0))
    .slice(0, 300);
}

function comparisonRow(part, most) {
  const predicted = totalsAt(part).sum.ms, found = measuredAt(part);
  const bar = (ms, kind) => element("i", {class: kind, style: {width: `${Math.max(0.5, 100 * ms / most)}%`}});
  return element(
    "tr", {},
    element(
      "th", {scope: "row", class: "path", style: {"padding-left": `${10 * (part.depth - 1)}px`}},
      button(
        part.name,
        () => {
          reveal(part);
          select(part);
        },
        {class: "plain", "data-key": `measured-${part.id}`})),
    element("td", {class: "number"}, msText(predicted)),
    element("td", {class: "number"}, found ? msText(found) : "—"),
    element("td", {class: "number"}, found && predicted ? `${(found / predicted).toFixed(2)} ×` : ""),
    element("td", {class: "pair", "aria-hidden": "true"}, bar(predicted, "predicted"), bar(found, "found")));
}

function showMeasured(panel) {
  if (!measured.asked) fetchMeasured();
  if (measured.error) return refill(panel, element("p", {class: "bad"}, measured.error.message));
  if (!measured.answer) return refill(panel, element("p", {class: "quiet"}, "…"));
  const {answer} = measured, parts = comparedParts();
  const most = Math.max(1e-12, ...parts.flatMap(part => [totalsAt(part).sum.ms, measuredAt(part)]));
  const {timeline} = answer, end = timeline && timeline.step_ms;
  refill(
    panel,
    element(
      "p", {}, element("span", {class: "path"}, answer.run),
      element("span", {class: "quiet"}, ` ${answer.state}, step ${answer.step}`)),
    answer.notes.map(note => element("p", {class: "quiet"}, note)),
    end &&
      [
        element("p", {}, `Measured step ${msText(end)}, predicted ${msText(store.state.plan.time.step_ms)}.`),
        element(
          "div", {class: "trace"},
          timeline.queues.filter(queue => queue.start_ms.length).map(queue => queueRow(queue, end)),
          timeAxis(end))
      ],
    tableOf(
      ["module", "predicted", "measured", "ratio", ""], i => i > 0 && i < 4,
      parts.map(part => comparisonRow(part, most))));
}

function startMeasured() {
  if (store.model.has_run) fetchMeasured();
  listen(["view"], () => {
    if (store.tab === "measured" && isPlanned()) showPanel();
  });
}
