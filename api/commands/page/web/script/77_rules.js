// The policy: its rules with what each matches, and its text with the lines that changed.

let shownLine = 0;

/// Shows a rule in the text and highlights what it matches.
function showRule(rule) {
  shownLine = rule.line;
  choose("tab", "rules");
  showPanel();
  searchFor(rule.at, rule.filters);
  const line = document.querySelector(".text-line.is-shown");
  if (line) line.scrollIntoView({block: "nearest"});
}

function ruleRow(rule) {
  const counts = ["operators", "parameters", "buffers"]
                   .filter(kind => rule[kind])
                   .map(kind => counted(rule[kind], kind.slice(0, -1)))
                   .join(", ");
  const overridden = rule.decided === 0 && counts;
  return element(
    "li", {class: "rule"},
    element(
      "button", {
        type: "button",
        class: "rule-text",
        "data-key": `rule-${rule.index}`,
        title: "Highlight what it matches",
        on: {click: () => showRule(rule)}
      },
      element("span", {class: "line-number"}, rule.list === "rules" ? String(rule.line) : rule.list),
      element("code", {}, rule.text)),
    element(
      "small", {class: overridden ? "bad" : ""},
      overridden ? `${counts}; later rules decide all of it` : counts || "matches nothing"),
    rule.why && element("small", {}, rule.why),
    rule.editable && !isReadOnly() &&
      button(
        "Remove", () => removeRule(rule),
        {class: "plain", "data-key": `remove-${rule.index}`, "aria-label": `Remove the rule ${rule.text}`}));
}

/// The text as lines, with those that the saved file does not have or no longer has.
function textLines() {
  const {difference, text} = store.state;
  if (difference.length) return difference;
  return text.replace(/\n$/, "").split("\n").map(
    (line, i) => ({kind: "same", before: i + 1, after: i + 1, text: line}));
}

const lineSigns = {
  same: " ",
  added: "+",
  removed: "−"
};

function lineElement(line, problems) {
  const found = problems.filter(one => line.after !== null && one.line === line.after);
  return [
    element(
      "div", {
        class: `text-line ${line.kind} ${line.after === shownLine ? "is-shown" : ""} ${
          found.length ? "is-wrong" : ""}`
      },
      element("span", {class: "line-number"}, line.after === null ? "" : String(line.after)),
      element(
        "span", {class: "sign"}, lineSigns[line.kind],
        line.kind !== "same" && element("span", {class: "unseen"}, line.kind)),
      element("code", {}, line.text || " ")),
    found.map(
      one => element(
        "div", {class: "text-line problem"}, element("span", {class: "bad"}, one.message),
        one.fix && ` — ${one.fix}`))
  ];
}

/// `most`: how many equal lines stay around a change; the rest is left out.
function differenceBlock(lines, problems = [], most = Infinity) {
  const isNear =
    lines.map((_, i) => lines.slice(Math.max(0, i - most), i + most + 1).some(line => line.kind !== "same"));
  const shown = [];
  lines.forEach((line, i) => {
    if (most === Infinity || isNear[i])
      shown.push(lineElement(line, problems));
    else if (i === 0 || isNear[i - 1])
      shown.push(element("div", {class: "text-line fold"}, "⋯"));
  });
  return element(
    "div", {class: "text", role: "region", tabindex: "0", "aria-label": "Text of the policy"}, shown.flat(2));
}

function addField() {
  return element(
    "form", {
      class: "fields",
      on: {
        submit: event => {
          event.preventDefault();
          const field = byId("new-rule");
          if (field.value.trim()) addRule(field.value.trim());
        }
      }
    },
    element("label", {"for": "new-rule"}, "Add a rule "), element("input", {
      type: "text",
      id: "new-rule",
      "data-key": "new-rule",
      size: 34,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "{ at = \"**\", acts = \"recompute\" }"
    }),
    element("button", {type: "submit", "data-key": "add-rule"}, "Add"));
}

function showRules(panel) {
  const {state} = store;
  const typed = byId("new-rule") ? byId("new-rule").value : "";
  const rules = state.ok ? state.rules : [];
  refill(
    panel,
    state.ok &&
      [
        element("h3", {}, "Rules, later ones win"),
        rules.length ? element("ol", {class: "rules"}, rules.map(ruleRow))
                     : element(
                         "p", {class: "quiet"}, "There are none yet: everything runs on ",
                         devicesText(totalsAt(store.tree.root).run), "."),
        !isReadOnly() && addField()
      ],
    !state.ok &&
      [
        element("h3", {class: "bad"}, "Mistakes"),
        element("ul", {class: "hints"}, state.problems.map(diagnosticItem))
      ],
    element("h3", {}, state.file.name), differenceBlock(textLines(), state.problems));
  if (byId("new-rule")) byId("new-rule").value = typed;
}
