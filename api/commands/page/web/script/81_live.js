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

/// Where a number of the series is in the view box; null where it is not finite.
function pointsOf(series, span, low, high) {
  return series.values.map((value, i) => {
    if (value === null) return null;
    const x = span > 0 ? 1000 * (series.steps[i] - series.steps[0]) / span : 500;
    const y = curveHeight * (high > low ? 0.96 - 0.92 * (value - low) / (high - low) : 0.5);
    return [x.toFixed(1), y.toFixed(2)];
  });
}

function curvePath(points) {
  return points.map((point, i) => point && `${i && points[i - 1] ? "L" : "M"}${point[0]} ${point[1]}`)
    .filter(Boolean)
    .join("");
}

/// Dots for few numbers, of which one alone makes no line.
const dotsPath = points => points.filter(Boolean).map(([x, y]) => `M${x} ${y}h0.01`).join("");
const mostDots = 40;

const valueUnits = {
  samples_per_second: "samples/s",
  "data.wait": "part of the time"
};

function curve(series) {
  const values = series.values.filter(value => value !== null), {steps} = series;
  if (!values.length) return null;
  const low = Math.min(...values), high = Math.max(...values), last = series.values.at(-1);
  const points = pointsOf(series, steps.at(-1) - steps[0], low, high), unit = valueUnits[series.name] || "";
  return element(
    "figure", {class: "curve", style: {"--c": series.evaluation ? "var(--d1)" : "var(--d0)"}},
    element(
      "figcaption", {}, element("b", {}, series.name), series.evaluation ? " in evaluation " : " ",
      element(
        "span", {class: "quiet"},
        [last === null ? "not finite" : numberText(last), unit, `at step ${steps.at(-1)}`]
          .filter(Boolean)
          .join(" "))),
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
        shape("path", {class: "curve-line", d: curvePath(points)}),
        values.length <= mostDots && shape("path", {class: "curve-dots", d: dotsPath(points)})),
      high > low && element("span", {class: "value-label high"}, numberText(high)),
      high > low && element("span", {class: "value-label low"}, numberText(low))),
    element(
      "div", {class: "step-axis", "aria-hidden": "true"}, element("span", {}, `step ${steps[0]}`),
      steps.at(-1) > steps[0] && element("span", {}, `step ${steps.at(-1)}`)));
}

function liveHead(answer) {
  const at =
    ` at step ${answer.step}${answer.steps ? ` of ${answer.steps}` : ""}, ${numberText(answer.seconds)} s`;
  if (!live.error) return element("p", {}, element("b", {}, answer.state), at);
  return element(
    "p", {},
    live.error.code === "gone"
      ? "The program does not answer any more. The page of a training ends with the training. "
      : `${live.error.message} `,
    element("span", {class: "quiet"}, `The last numbers are those${at}.`));
}

function showLive(panel) {
  if (!live.answer && !live.error) {
    pollLive();
    return refill(panel, element("p", {class: "quiet"}, "…"));
  }
  const {answer} = live;
  if (!answer) return refill(panel, element("p", {class: "bad"}, live.error.message));
  refill(
    panel, liveHead(answer),
    answer.steps && element("progress", {max: answer.steps, value: answer.step, "aria-label": "Steps"}),
    answer.series.length ? element("div", {class: "curves"}, answer.series.map(curve))
                         : element("p", {class: "quiet"}, "No number has been logged yet."));
}

function startLive() {
  listen(["tab"], () => {
    if (store.tab === "live") pollLive();
  });
}
