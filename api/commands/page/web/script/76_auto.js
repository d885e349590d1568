// What `auto` proposes: starts the search, shows how far it is, offers its rules one by one.

const auto = {
  answer: null,
  keepRules: true,
  budgets: {},
  timer: 0
};

async function pollAuto() {
  clearTimeout(auto.timer);
  try {
    auto.answer = await get("auto");
  } catch (error) { return showNotice(error); }
  if (auto.answer.state === "running")
    auto.timer = setTimeout(pollAuto, 500);
  else
    announce(autoText());
  if (store.tab === "auto") showPanel();
}

function autoText() {
  const {state, plans, most, best_ms: best} = auto.answer;
  if (state === "running")
    return `${plans} of at most ${most} placements compared; the best takes ${
      best === null || best < 0 ? "—" : msText(best)}`;
  if (state === "failed") return "The search found no placement.";
  return state === "done" ? `The search compared ${counted(plans, "placement")}.` : "";
}

async function startAuto() {
  const budgets = Object.fromEntries(Object.entries(auto.budgets).filter(([, text]) => text));
  try {
    auto.answer = await post("auto", {budgets, keep_rules: auto.keepRules});
    showPanel();
    pollAuto();
  } catch (error) { showNotice(error); }
}

async function stopAuto() {
  try {
    await post("auto/stop", {});
    pollAuto();
  } catch (error) { showNotice(error); }
}

const isTaken = rule => store.state.rules.some(one => one.list === "rules" && one.text === rule);

/// In the order of the search, since later rules win over earlier ones.
async function takeAllRules(rules) {
  for (const rule of rules) await addRule(rule);
}

function autoResult(result) {
  const step = store.state.plan.time.step_ms;
  const rest = result.rules.filter(rule => !isTaken(rule));
  return [
    element(
      "p", {}, element("b", {}, `${msText(result.step_ms)} a step`),
      `, ${result.fits ? "fits" : "does not fit"}; the current text takes ${msText(step)}. `,
      result.revision !== revision() && !result.rules.some(isTaken) &&
        element("span", {class: "quiet"}, "The policy has changed since the search.")),
    result.pinned.length > 0 && result.rules.length === 0 &&
      element(
        "p", {}, "Your own rules place everything: ", element("code", {}, result.pinned.join(", ")), ". ",
        button(
          "Search without my rules",
          () => {
            auto.keepRules = false;
            startAuto();
          })),
    result.pinned.length === 0 && result.rules.length === 0 &&
      element("p", {}, "It needs no rule: everything stays on the device of the run."),
    result.rules.length > 0 &&
      element(
        "ol", {class: "offers"},
        result.rules.map(
          (rule, i) => element(
            "li", {class: "offer"}, element("code", {}, rule), element("small", {}, result.comments[i] || ""),
            isTaken(rule) ? element("span", {class: "good"}, "taken over")
                          : button(
                              "Take over", () => addRule(rule),
                              {"data-key": `take-${i}`, "aria-label": `Take over ${rule}`})))),
    rest.length > 1 && button("Take over all", () => takeAllRules(rest), {class: "main"}),
  ];
}

function budgetField(device) {
  const id = `budget-${device.name}`;
  const note = event => { auto.budgets[device.name] = event.target.value.trim(); };
  const field = element("input", {
    type: "text",
    id,
    "data-key": id,
    size: 9,
    placeholder: "its limit",
    value: auto.budgets[device.name] || "",
    on: {input: note}
  });
  return element("span", {}, element("label", {"for": id}, deviceTag(device.name), " at most "), field);
}

function showAuto(panel) {
  if (auto.answer === null) {
    auto.answer = {state: "idle"};
    pollAuto();
  }
  const {answer} = auto, runs = answer.state === "running";
  refill(
    panel,
    element(
      "p", {class: "quiet"},
      "Compares placements with the cost model and proposes rules. Nothing changes until you take a rule over."),
    element(
      "div", {class: "fields"}, devices().filter(device => device.use !== "cpu").map(budgetField),
      element(
        "label", {}, element("input", {
          type: "checkbox",
          "data-key": "keep",
          checked: auto.keepRules,
          on: {change: event => { auto.keepRules = event.target.checked; }}
        }),
        " keep my rules"),
      runs ? button("Stop with the best so far", stopAuto) : button("Search", startAuto, {class: "main"})),
    runs && element("progress", {max: answer.most, value: answer.plans, "aria-label": "Placements compared"}),
    element("p", {role: "status"}, autoText()),
    answer.error && element("p", {class: "bad"}, answer.error.message || answer.error),
    answer.result && !runs && autoResult(answer.result));
}
