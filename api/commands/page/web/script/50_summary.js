// The line of consequences: whether it fits, the step, copies, and each device with its memory.

/// A change against the saved file, in green where it is better.
function delta(before, after, text) {
  const difference = after - before, shown = signed(difference, text);
  if (!shown) return null;
  return element(
    "span", {class: `delta ${difference < 0 ? "good" : "bad"}`, title: `saved: ${text(before)}`}, shown);
}

function tile(name, value, change, note, properties = {}) {
  return element(
    "div", {class: "tile", ...properties}, element("div", {class: "head"}, name),
    element("div", {class: "line"}, element("b", {}, value), change), note && element("small", {}, note));
}

const over = device => device.limit !== null && device.peak > device.limit;

function verdictTile(plan) {
  const tight = Object.entries(plan.devices).filter(([, device]) => over(device));
  const note = tight.length
    ? tight.map(([name, device]) => `${name} over by ${bytesText(device.peak - device.limit)}`).join(", ")
    : Object.entries(plan.devices)
        .filter(([, device]) => device.limit)
        .map(([name, device]) => `${name} spare ${bytesText(device.limit - device.peak)}`)
        .join(", ");
  return element(
    "div", {class: `tile verdict ${plan.fits ? "" : "is-over"}`}, element("div", {class: "head"}, "Plan"),
    element(
      "div", {class: "line"},
      element("b", {class: plan.fits ? "good" : "bad"}, plan.fits ? "Fits" : "Does not fit")),
    element("small", {}, note || "no limit"),
    !plan.fits && button("What helps", () => choose("tab", "advice"), {class: "plain"}));
}

function deviceTile(bound, plan, compared) {
  const device = plan.devices[bound.name] || {peak: 0, limit: bound.limit || null},
        most = device.limit || device.memory || device.peak || 1;
  const saved = compared && compared.devices[bound.name] ? compared.devices[bound.name].peak.a : null;
  const meter = element(
    "div", {
      class: over(device) ? "meter is-over" : "meter",
      role: "meter",
      "aria-label": `Peak of ${bound.name}`,
      "aria-valuemin": 0,
      "aria-valuemax": most,
      "aria-valuenow": device.peak,
      "aria-valuetext": `${bytesText(device.peak)} of ${bytesText(most)}`
    },
    element("i", {style: {width: `${Math.min(100, 100 * device.peak / most)}%`}}),
    saved !== null && saved !== device.peak &&
      element(
        "em", {style: {left: `${Math.min(99, 100 * saved / most)}%`}, title: `saved: ${bytesText(saved)}`}));
  return element(
    "div", {
      class: `tile device ${over(device) ? "is-over" : ""}`,
      "data-device": bound.name,
      style: {"--c": deviceColour(bound.name)}
    },
    element(
      "div", {class: "head"}, dotOf(bound.name), element("b", {}, bound.name),
      bound.use === bound.name ? "" : bound.use,
      device.peak_at &&
        element("span", {class: "peak-at", title: `peak at ${device.peak_at}`}, `peak at ${device.peak_at}`)),
    element(
      "div", {class: "line"}, element("b", {}, bytesText(device.peak)),
      element(
        "small", {},
        device.limit ? `of ${bytesText(device.limit)}`
          : device.memory ? `of ${bytesText(device.memory)}, no limit`
                          : ""),
      saved !== null && delta(saved, device.peak, bytesText)),
    meter, !isReadOnly() && zonesOf(bound.name));
}

function rankTile(plan) {
  if (!(store.model.ranks > 1)) return null;
  const waited = plan.exchange ? plan.exchange.exposed_ms : 0;
  return tile(
    "Ranks", String(store.model.ranks), null,
    waited > 0 ? `exchanges exposed ${msText(waited)}` : "exchanges hidden");
}

function showSummary() {
  if (!isPlanned()) return byId("summary").replaceChildren();
  const {plan, compared} = store.state, {time, traffic} = plan;
  refill(
    byId("summary"), verdictTile(plan),
    tile(
      "Step, predicted", msText(time.step_ms),
      compared && delta(compared.time.step_ms.a, time.step_ms, msText),
      time.exposed_copies_ms > 0 ? `${msText(time.exposed_copies_ms)} waiting for copies`
                                 : "no waiting for copies"),
    tile(
      "Copies a step", bytesText(traffic.bytes),
      compared && delta(compared.transfers.bytes.a, traffic.bytes, bytesText), `${traffic.copies} of them`),
    rankTile(plan), devices().map(device => deviceTile(device, plan, compared)));
}

function startSummary() {
  listen(["state"], showSummary);
}
