// Curves of a run, read from its files while it trains.

const live = {
  answer: null,
  error: null,
  timer: 0
};
const curveHeight = 120;

async function pollLive() {
  clearTimeout(live.timer);
  try {
    live.answer = await get("live");
    live.error = null;
  } catch (error) { live.error = error; }
  if (store.tab === "live") {
    showPanel();
    if (!live.error && live.answer.state === "running" || live.error && live.error.code === "gone")
      live.timer = setTimeout(pollLive, 2000);
  }
}

function curvePath(series, span, low, high) {
  let path = "", pen = "M";
  series.values.forEach((value, i) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const x = span > 0 ? 1000 * (series.steps[i] - series.steps[0]) / span : 500,
          y = curveHeight * (0.96 - 0.92 * (value - low) / (high - low || 1));
    path += `${pen}${x.toFixed(1)} ${y.toFixed(2)}`;
    pen = "L";
  });
  return path;
}

function curve(series) {
  const values = series.values.filter(value => value !== null), {steps} = series;
  if (!values.length) return null;
  const low = Math.min(...values), high = Math.max(...values), last = series.values.at(-1);
  return element(
    "figure", {class: "curve", style: {"--c": series.evaluation ? "var(--d1)" : "var(--d0)"}},
    element(
      "figcaption", {}, element("b", {}, series.name), series.evaluation ? " in evaluation " : " ",
      element(
        "span", {class: "quiet"}, last === null ? "not finite" : numberText(last),
        ` at step ${steps.at(-1)}; between ${numberText(low)} and ${numberText(high)}`)),
    element(
      "div", {class: "plot"},
      shape(
        "svg", {
          viewBox: `0 0 1000 ${curveHeight}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${series.name} from step ${steps[0]} to ${steps.at(-1)}: from ${
            numberText(values[0])} to ${numberText(values.at(-1))}`
        },
        shape("path", {class: "curve-line", d: curvePath(series, steps.at(-1) - steps[0], low, high)}))));
}

function showLive(panel) {
  if (!live.answer && !live.error) {
    pollLive();
    return refill(panel, element("p", {class: "quiet"}, "…"));
  }
  if (live.error) return refill(panel, element("p", {class: "bad"}, live.error.message));
  const {answer} = live;
  refill(
    panel,
    element(
      "p", {}, element("b", {}, answer.state),
      ` at step ${answer.step}${answer.steps ? ` of ${answer.steps}` : ""}, ${numberText(answer.seconds)} s`),
    answer.steps && element("progress", {max: answer.steps, value: answer.step, "aria-label": "Steps"}),
    answer.series.length ? element("div", {class: "curves"}, answer.series.map(curve))
                         : element("p", {class: "quiet"}, "No number has been logged."));
}

function startLive() {
  listen(["tab"], () => {
    if (store.tab === "live") pollLive();
  });
}
