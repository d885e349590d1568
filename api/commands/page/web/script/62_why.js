// Which line of the policy decided where a part is, and what became of its nodes.

const explained = {
  part: null,
  answer: null,
  error: null
};

/// Groups of { rule, attribute, values, count } from the placement of all that is inside.
function decisionsOf(part) {
  const groups = new Map();
  const note = (attributeName, value, ruleIndex) => {
    const key = `${attributeName} ${value} ${ruleIndex}`;
    if (!groups.has(key))
      groups.set(key, {
        attribute: attributeName,
        value,
        rule: ruleIndex === null ? null : store.state.rules[ruleIndex],
        count: 0
      });
    ++groups.get(key).count;
  };
  for (const one of part.inside) {
    const place = store.state.placement[one.id];
    if (!place) continue;
    if (place.run !== undefined) {
      note("run", place.run, place.rule);
      if (place.rule_acts !== null && place.rule_acts !== undefined)
        note("acts", place.acts, place.rule_acts);
    } else {
      note("param", place.param, place.rule);
      if (one.trains) note("state", place.state, place.rule_state);
    }
  }
  return [...groups.values()];
}

const ruleName = rule => rule.list === "place" ? "--place" : `line ${rule.line}`;

function ruleLink(rule) {
  if (!rule) return element("span", {class: "quiet"}, "default");
  return [
    button(ruleName(rule), () => showRule(rule), {class: "plain", "data-key": `why-${rule.index}`}), " ",
    element("code", {}, `at = "${rule.at}"`),
    Object.entries(rule.filters).map(([key, value]) => element("code", {}, `, ${key} = "${value}"`))
  ];
}

/// The lines that decide one attribute, next to its choices.
function decidedBy(part, attributeName) {
  const rules = [...new Set(
    decisionsOf(part).filter(group => group.attribute === attributeName).map(group => group.rule))];
  return element(
    "span", {class: "decided"},
    rules.length === 0
      ? "default"
      : rules.map(
          (rule, i) =>
            [i > 0 && ", ",
             rule
               ? button(
                   ruleName(rule), () => showRule(rule),
                   {class: "plain", "data-key": `decided-${attributeName}-${rule.index}`, title: rule.text})
               : "default"]));
}

function whyList(part) {
  const rows = decisionsOf(part).map(
    group => element(
      "tr", {}, element("td", {}, group.attribute),
      element("td", {}, group.attribute === "acts" ? group.value : deviceTag(group.value)),
      element("td", {}, ruleLink(group.rule)), element("td", {class: "number"}, String(group.count))));
  const fallen = part.inside.map(one => store.state.placement[one.id]).filter(place => place && place.prefer);
  return element(
    "details", {class: "why", open: whyIsOpen(), on: {toggle: event => { whyOpen = event.target.open; }}},
    element("summary", {"data-key": "why"}, "Why here"),
    tableOf(["", "value", "decided by", "parts"], i => i === 3, rows),
    fallen.length > 0 &&
      element("p", {}, `${counted(fallen.length, "operator")} fell back: ${fallen[0].prefer}`),
    button("Explain every node", () => explain(part), {class: "plain"}),
    explained.part === part && explanation());
}

let whyOpen = false;
const whyIsOpen = () => whyOpen;

/// Asks for all nodes of a step that come from a part.
async function explain(part) {
  Object.assign(explained, {part, answer: null, error: null});
  whyOpen = true;
  try {
    explained.answer = await post("explain", {item: (part.joined || part).id});
  } catch (error) { explained.error = error; }
  if (explained.part !== part) return;
  showInspector();
  announce(
    explained.error ? explained.error.message
                    : `${counted(explained.answer.nodes.length, "node")} of a step come from it.`);
}

function explanation() {
  if (explained.error) return element("p", {class: "bad"}, explained.error.message);
  if (!explained.answer) return element("p", {class: "quiet"}, "…");
  const {cost, nodes} = explained.answer;
  return [
    cost &&
      element(
        "p", {class: "quiet"},
        `forward ${msText(cost.forward_ms)}, backward ${msText(cost.backward_ms)}, update ${
          msText(cost.update_ms)}`),
    element(
      "div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes of a step"},
      element(
        "table", {class: "nodes"},
        element(
          "thead", {},
          element(
            "tr", {},
            ["phase", "node", "device", "kernel", "decided by", "time"].map(
              name => element("th", {scope: "col"}, name)))),
        element(
          "tbody", {},
          nodes.slice(0, 400).map(
            node => element(
              "tr", {}, element("td", {}, node.phase),
              element("td", {class: "path"}, `${node.op} ${node.path}`), element("td", {}, node.device),
              element("td", {}, node.kernel),
              element("td", {}, node.reason, node.why_not && element("small", {}, ` ${node.why_not}`)),
              element("td", {class: "number"}, node.ms ? msText(node.ms) : "")))))),
    nodes.length > 400 &&
      element("p", {class: "quiet"}, `and ${nodes.length - 400} more; select something smaller to see them`)
  ];
}

function startWhy() {
  listen(["state"], () => { explained.part = null; });
}
