// What the plan advises: mistakes, hints, and rules that would make it fit.

const remedies = {
  revision: -1,
  list: []
};

/// Remedies are planned one by one, so that they come after the plan.
async function fetchRemedies() {
  const wanted = revision();
  remedies.revision = wanted;
  remedies.list = null;
  try {
    const plan = await get("plan");
    if (wanted === revision()) remedies.list = plan.remedies;
  } catch (error) {
    remedies.list = [];
    showNotice(error, "No rules that free memory: ");
  }
  if (store.tab === "advice" && wanted === revision()) showPanel();
}

function currentRemedies() {
  if (!store.state.remedies_pending) return store.state.plan.remedies;
  if (remedies.revision !== revision()) fetchRemedies();
  return remedies.list;
}

function lineLink(line) {
  const rule = store.state.rules.find(one => one.line === line && line > 0);
  return rule ? button(`line ${line}`, () => showRule(rule), {class: "plain", "data-key": `line-${line}`})
              : null;
}

function remedyRow(remedy) {
  const note =
    [
      `frees ${bytesText(remedy.bytes)}`, remedy.suffices ? "fits" : "not enough by itself",
      remedy.step_ms ? `${msText(remedy.step_ms)} a step` : ""
    ].filter(Boolean)
      .join(", ");
  return element(
    "li", {class: "offer"}, element("code", {}, remedy.rule), element("small", {}, note),
    !isReadOnly() &&
      button(
        "Add this rule", () => addRule(remedy.rule),
        {"data-key": `remedy-${remedy.rule}`, "aria-label": `Add the rule ${remedy.rule}`}));
}

function remedySection() {
  if (store.state.plan.fits) return null;
  const list = currentRemedies();
  return [
    element("h3", {}, "Rules that free memory"),
    list === null   ? element("p", {class: "quiet"}, "Planning them…")
      : list.length ? element("ul", {class: "offers"}, list.map(remedyRow))
                    : element("p", {class: "quiet"}, "None was found.")
  ];
}

function diagnosticItem(one) {
  const wanted =
    [one.expected && `expected ${one.expected}`, one.got && `got ${one.got}`].filter(Boolean).join(", ");
  return element(
    "li", {}, lineLink(one.line), one.path && element("code", {}, `${one.path}: `), one.message,
    wanted && `: ${wanted}`, one.fix && element("small", {class: "fix"}, one.fix));
}

function showAdvice(panel) {
  const {plan, warnings} = store.state;
  const nothing = plan.fits && !plan.hints.length && !warnings.length;
  refill(
    panel, nothing && element("p", {class: "quiet"}, "The plan fits, and there is nothing to advise."),
    remedySection(),
    plan.hints.length > 0 &&
      [
        element("h3", {}, "Hints"),
        element(
          "ul", {class: "hints"},
          plan.hints.map(
            hint => element(
              "li", {}, lineLink(hint.line), hint.message,
              hint.fix && element("small", {class: "fix"}, hint.fix))))
      ],
    warnings.length > 0 &&
      [element("h3", {}, "Warnings"), element("ul", {class: "hints"}, warnings.map(diagnosticItem))]);
}
