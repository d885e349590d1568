// Memory of each device over the step: what lies there all the time, and what comes and goes.

const memoryKinds =
  [["gradients", "gradients", 0.62], ["activations", "activations", 0.42], ["workspace", "workspace", 0.9]];
/// What a device holds all the time. The reserve is gaps between the buffers that come and go, and
/// room for queues that are faster or slower than predicted.
const persistentKinds = [
  ["parameters", "parameters"], ["state", "state"], ["others", "inputs and outputs"], ["reserve", "reserve"]
];
const chartHeight = 100;

const persistentOf = memory => Object.values(memory.persistent).reduce((sum, bytes) => sum + (bytes || 0), 0);

/// The most that the chart shows: the limit, where it is in sight.
function topOf(memory) {
  const {peak, limit} = memory;
  return (limit && limit < 2.2 * peak ? Math.max(limit, peak) : peak) * 1.04 || 1;
}

/// The outline of a band between two lines of steps, in the units of the view box.
function bandPath(times, low, high, end, top) {
  const y = bytes => (chartHeight * (1 - bytes / top)).toFixed(2), x = ms => (1000 * ms / end).toFixed(2);
  let path = "";
  times.forEach((ms, i) => {
    path += `${i ? "L" : "M"}${x(ms)} ${y(high[i])}H${x(i + 1 < times.length ? times[i + 1] : end)}`;
  });
  for (let i = times.length - 1; i >= 0; --i)
    path += `L${x(i + 1 < times.length ? times[i + 1] : end)} ${y(low[i])}H${x(times[i])}`;
  return `${path}Z`;
}

function bandsOf(memory, end, top) {
  let low = memory.at_ms.map(() => 0), high = memory.at_ms.map(() => persistentOf(memory));
  const bands = [shape(
    "path", {class: "band", style: {"fill-opacity": 0.24}, d: bandPath(memory.at_ms, low, high, end, top)})];
  for (const [key, , opacity] of memoryKinds) {
    low = high;
    high = low.map((bytes, i) => bytes + memory[key][i]);
    bands.push(shape(
      "path",
      {class: "band", style: {"fill-opacity": opacity}, d: bandPath(memory.at_ms, low, high, end, top)}));
  }
  return bands;
}

const usedAt = (memory, i) =>
  persistentOf(memory) + memoryKinds.reduce((sum, [key]) => sum + memory[key][i], 0);

/// The last point that is not after `ms`.
function pointAt(times, ms) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= ms)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

function memoryChart(memory, end) {
  const top = topOf(memory), name = memory.device;
  const parts = persistentKinds.filter(([key]) => memory.persistent[key])
                  .map(([key, kind]) => `${kind} ${bytesText(memory.persistent[key])}`)
                  .join(", ");
  const limit = memory.limit && memory.limit <= top;
  return element(
    "figure", {class: "memory", style: {"--c": deviceColour(name)}},
    element(
      "figcaption", {}, deviceTag(name),
      element(
        "span", {class: "quiet"}, ` peak ${bytesText(memory.peak)}`,
        memory.limit ? ` of ${bytesText(memory.limit)}` : "", parts ? ` · all the time ${parts}` : "")),
    element(
      "div", {class: "plot"},
      shape(
        "svg", {viewBox: `0 0 1000 ${chartHeight}`, preserveAspectRatio: "none", "aria-hidden": "true"},
        bandsOf(memory, end, top),
        limit && shape("path", {class: "limit", d: `M0 ${chartHeight * (1 - memory.limit / top)}H1000`})),
      limit &&
        element(
          "span", {class: "limit-label", style: {top: `${100 * (1 - memory.limit / top)}%`}}, "limit")));
}

function memoryLegend() {
  const one = (name, opacity) => element(
    "span", {}, element("i", {class: "dot", style: {"--c": "var(--ink)", opacity: String(opacity)}}), name);
  return element(
    "p", {class: "legend quiet"}, one("all the time", 0.24),
    memoryKinds.map(([, name, opacity]) => one(name, opacity)));
}
