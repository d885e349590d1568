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
  const isElsewhere = one.file && one.file.split("/").pop() !== store.state.file.name;
  return element(
    "li", {}, isElsewhere ? element("code", {}, `${one.file}:${one.line ? `${one.line}:` : ""} `) : lineLink(one.line),
    one.path && element("code", {}, `${one.path}: `), one.message,
    wanted && `: ${wanted}`, one.fix && element("small", {class: "fix"}, one.fix));
}

/// Copies of the weights, gradients and states that a line of the policy places.
function copiesOfHomes(line) {
  const rules = store.state.rules, placed = store.state.placement;
  const isPlacedThere = path => {
    const part = endOfCopy(store.tree, path), place = part && placed[part.id];
    return place && isStored(part) &&
      [place.rule, place.rule_state].some(rule => rule !== null && rules[rule] && rules[rule].line === line);
  };
  return store.state.plan.transfers.filter(
    copy => !copy.scalar && [copy.producer, copy.value, ...copy.consumers].some(isPlacedThere));
}

/// What following a hint changes in the step time.
function hintEffect(hint) {
  if (hint.kind !== "home") return "";
  const exposed = exposedOfCopies(copiesOfHomes(hint.line));
  return exposed > 0
    ? `Computing waits ${msText(exposed)} of the ${
        msText(
          store.state.plan.time.step_ms)} of a step for these copies: it gains at most that without them.`
    : "Computing hides these copies: a step does not get faster without them.";
}

/// Hints say it with more detail than these warnings.
const isSaidByHint = warning => store.state.plan.hints.some(
  hint => hint.kind === "home" && hint.line === warning.line && /cross every step$/.test(warning.message));

const ownWarnings = () => store.state.warnings.filter(warning => !isSaidByHint(warning));

function showAdvice(panel) {
  const {plan} = store.state, warnings = ownWarnings();
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
              hint.fix && element("small", {class: "fix"}, hint.fix),
              hintEffect(hint) && element("small", {class: "fix"}, hintEffect(hint)))))
      ],
    warnings.length > 0 &&
      [element("h3", {}, "Warnings"), element("ul", {class: "hints"}, warnings.map(diagnosticItem))]);
}
