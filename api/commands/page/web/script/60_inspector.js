// What is selected: what it is, where it lies, what can be chosen, which line decided.

/// Whether all of a part has this value already.
function isChosenAt(part, choice, value) {
  const keys = choice.key === "on" ? ["run", "param", "state"] : [choice.key];
  return keys.map(key => valuesOf(part, key)).every(values => !values.size || onlyDevice(values) === value);
}

function choiceRow(part, choice) {
  const counts = valuesOf(part, choice.key);
  const label = `choice-${choice.key}`, help = attribute(choice.key);
  return [
    element("span", {id: label, class: "choice-name", title: help && help.help}, choice.name),
    element("span", {class: "choices", role: "group", "aria-labelledby": label}, choice.values.map(value => {
      const count = counts.size > 1 ? counts.get(value) || 0 : 0;
      return button(value + (count ? ` ${count}` : ""), () => place([part], {[choice.key]: value}), {
        "data-key": `${choice.key}-${value}`,
        "aria-pressed": String(isChosenAt(part, choice, value)),
        disabled: isReadOnly(),
        style: choice.key === "acts" ? {} : {"--c": deviceColour(value)}
      });
    })),
    choice.key === "on" ? element("span") : decidedBy(part, choice.key)
  ];
}

function aboutText(part) {
  const one = isStored(part) ? part : operatorOf(part);
  if (!one) return contentText(part);
  const facts = [
    isStored(part) ? one.kind : one.op, one.shape && shapeText(one.shape), one.dtype,
    one.bytes ? bytesText(one.bytes) : "",
    one.trains === false && ["does not train", one.reason].filter(Boolean).join(": "),
    one.raw_name && one.raw_name !== one.path ? `in the file ${one.raw_name}` : ""
  ];
  return facts.filter(Boolean).join(" · ");
}

function figure(name, value, note, title) {
  if (!value) return null;
  return element(
    "div", {title}, element("dt", {}, name),
    element("dd", {}, value, note && element("small", {}, ` ${note}`)));
}

function figures(part) {
  const totals = totalsAt(part), [forward, backward, update] = totals.phases, crossing = crossingOf(part);
  const all = totalsAt(store.tree.root).sum.ms, measured = measuredAt(part);
  const shareHelp = `Devices work at the same time: all kernels together take ${
    msText(all)}, the step takes ${msText(store.state.plan.time.step_ms)}`;
  return element(
    "dl", {class: "figures"},
    figure(
      "Time", totals.sum.ms && msText(totals.sum.ms),
      totals.sum.ms && `${percent(totals.sum.ms / all)} of all work`, shareHelp),
    figure("Forward", forward && msText(forward)), figure("Backward", backward && msText(backward)),
    figure("Update", update && msText(update)), figure("Measured", measured && msText(measured)),
    figure("Parameters", totals.sum.parameters && bytesText(totals.sum.parameters)),
    figure("State", totals.sum.states && bytesText(totals.sum.states)),
    figure("Activations", totals.sum.activations && bytesText(totals.sum.activations)),
    figure(
      "Copies", crossing.bytes && bytesText(crossing.bytes),
      crossing.bytes && (crossing.exposed > 0 ? "exposed" : "hidden")));
}

function partTitle(part) {
  const line = ancestry(part);
  const crumbs = line.slice(0, -1).map(
    (at, i) =>
      [button(at.name, () => select(at), {class: "crumb", "data-key": `crumb-${at.id}`}),
       isStored(line[i + 1]) ? ":" : "."]);
  return element("h2", {class: "path"}, crumbs, part.name);
}

/// Parameters of a row, to select them one by one.
function storedList(part) {
  const stored = part.joined ? part.children.filter(isStored) : [];
  if (!stored.length) return null;
  return element(
    "p", {class: "stored"},
    stored.map((one, i) => [i > 0 && ", ", button(`${one.name} ${shapeText(one.shape)}`, () => {
                              reveal(one);
                              select(one);
                              changed("view");
                            }, {class: "plain", "data-key": `stored-${one.id}`})]));
}

function showInspector() {
  const part = store.selection, inspector = byId("inspector");
  if (!isPlanned()) return refill(inspector);
  if (!part)
    return refill(inspector, element("p", {class: "quiet"}, "Select a module, an operator or a parameter."));
  refill(
    inspector, partTitle(part), element("p", {class: "quiet about"}, aboutText(part)),
    element("div", {class: "choice-grid"}, choicesOf(part).map(choice => choiceRow(part, choice))),
    figures(part), storedList(part), whyList(part));
}

function startInspector() {
  listen(["state", "selection"], showInspector);
}
