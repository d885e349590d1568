// What `auto` proposes: starts the search, shows how far it is, offers its changes one by one.

const auto = {
  answer: null,
  refused: null,  // why a search of `refusedAt`, a revision, was not started
  refusedAt: -1,
  keepRules: true,
  budgets: {},
  timer: 0
};

async function pollAuto() {
  clearTimeout(auto.timer);
  try {
    auto.answer = await get("auto");
  } catch (error) { return showNotice(error, ""); }
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
  if (state === "failed") return failureText(auto.answer.error);
  return state === "done" ? `The search compared ${counted(plans, "placement")}.` : "";
}

/// Says in one or two sentences why there is no result.
function failureText(error) {
  const [nearest] = error.diagnostics;
  if (error.code === "does_not_fit" && nearest) {
    const name = nearest.message.split(" ").at(-1), got = nearest.got.split(" (")[0];
    return `No placement fits. The nearest one needs ${got} on ${name}, where it may take ${
      nearest.expected}. Allow more memory above, or train with a smaller batch.`;
  }
  return error.code === "stopped" ? error.message : `The search ended with a mistake: ${error.message}`;
}

/// Why a search was not started, with what starts it.
function refusalOf(error) {
  if (error.code !== "all_placed") return element("p", {class: "bad", role: "alert"}, error.message);
  return element(
    "p", {role: "alert"},
    "Your rules place everything, so that nothing is left to search while they are kept. ",
    button("Search without my rules", () => {
      auto.keepRules = false;
      startAuto();
    }));
}

async function startAuto() {
  auto.refused = null;
  const budgets = Object.fromEntries(Object.entries(auto.budgets).filter(([, text]) => text));
  try {
    auto.answer = await post("auto", {budgets, keep_rules: auto.keepRules});
    pollAuto();
  } catch (error) {
    Object.assign(auto, {refused: error, refusedAt: revision()});
    announce(error.message);
  }
  showPanel();
}

async function stopAuto() {
  try {
    await post("auto/stop", {});
    pollAuto();
  } catch (error) { showNotice(error); }
}

const takeChanges = indices => edit({proposed: indices});

/// What the search proposes is a difference from the present text, so it is asked again after each edit.
async function renewAuto() {
  await lastRequest;
  if (auto.answer.result.current !== revision()) pollAuto();
}

function changeRow(change, index) {
  const verb = change.kind === "add" ? "Add" : "Remove";
  const note = change.kind === "add" ? change.comment : `${change.list} line ${change.line}`;
  return element(
    "li", {class: `offer ${change.kind === "add" ? "added" : "removed"}`},
    element("span", {class: "sign", "aria-hidden": "true"}, change.kind === "add" ? "+" : "−"),
    element("code", {}, change.rule), element("small", {}, note),
    button(
      verb, () => takeChanges([index]),
      {"data-key": `take-${change.kind}-${change.rule}`, "aria-label": `${verb} ${change.rule}`}));
}

/// "Everything runs on cpu; gpu is not used."
function outcomeOf(result) {
  const used = result.devices.filter(one => one.operators > 0);
  const others = result.devices.filter(one => one.operators === 0).map(({device, stored}) => {
    return stored ? `${device} stores ${bytesText(stored)} of weights and optimizer state`
                  : `${device} is not used`;
  });
  const runs = used.length === 1
    ? `Everything runs on ${used[0].device}`
    : used.map(one => `${one.device} runs ${counted(one.operators, "operator")}`).join(", ");
  return `${[runs, ...others].join("; ")}.`;
}

/// "For comparison: all on cpu 372 ms; all on gpu 14.0 ms, does not fit."
function comparisonOf(result) {
  const simple = result.compared.filter(one => one.name.startsWith("all on "));
  const texts = simple.map(({name, possible, fits, step_ms: ms}) => {
    return possible ? `${name} ${msText(ms)}${fits ? "" : ", does not fit"}` : `${name} is not possible`;
  });
  return texts.length ? `For comparison: ${texts.join("; ")}.` : "";
}

function autoResult(result) {
  const step = store.state.plan.time.step_ms, {changes} = result;
  if (result.current !== revision()) renewAuto();
  return [
    element(
      "p", {}, element("b", {}, `${msText(result.step_ms)} a step`),
      `, ${result.fits ? "fits" : "does not fit"}; the current text takes ${msText(step)}. `,
      result.revision !== revision() && changes.length > 0 &&
        element("span", {class: "quiet"}, "The policy has changed since the search.")),
    element("p", {}, outcomeOf(result)),
    element("p", {class: "quiet"}, comparisonOf(result)),
    changes.length === 0 && element("p", {class: "good"}, "The text has all that the search proposes."),
    changes.length > 0 &&
      [
        element(
          "p", {class: "quiet"},
          result.kept_rules ? "New rules come into the list auto, where your own rules win over them."
                            : "These rules take the place of yours."),
        element("ol", {class: "offers"}, changes.map(changeRow))
      ],
    changes.length > 1 &&
      button("Take over all", () => takeChanges(changes.map((_, i) => i)), {class: "main"}),
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
  if (auto.refusedAt !== revision()) auto.refused = null;
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
          on: {
            change: event => {
              auto.keepRules = event.target.checked;
              auto.refused = null;
              showPanel();
            }
          }
        }),
        " keep my rules"),
      runs ? button("Stop with the best so far", stopAuto) : button("Search", startAuto, {class: "main"})),
    runs && element("progress", {max: answer.most, value: answer.plans, "aria-label": "Placements compared"}),
    auto.refused && refusalOf(auto.refused), !auto.refused && [
      element("p", {role: "status", class: answer.state === "failed" ? "bad" : ""}, autoText()),
      answer.result && !runs && autoResult(answer.result)
    ]);
}
