// Sends edits one after the other, and takes over the state that each gives back.

let lastRequest = Promise.resolve();

function takeState(state) {
  const before = store.state;
  store.state = state;
  store.totals = isPlanned() ? totalsOf(store.tree, state) : null;
  changed("state");
  return before;
}

async function fetchState() {
  takeState(await get("state"));
}

/// Runs requests that change the text in the order of the clicks; shows why one was refused.
function inOrder(act) {
  const next = lastRequest.then(async () => {
    document.body.setAttribute("aria-busy", "true");
    showNotice(null);
    try {
      await act();
    } catch (error) {
      if (error.code === "stale") {
        await fetchState();
        showNotice(new Refused(409, {
          message:
            "The policy was changed from another page or tab. This shows it as it is; do your edit again."
        }));
      } else {
        showNotice(error);
      }
    } finally { document.body.removeAttribute("aria-busy"); }
  });
  lastRequest = next.catch(() => {});
  return next;
}

const revision = () => store.state.revision;

/// "gpu peak 98.0 MiB, step 85.7 ms, fits", for screen readers.
function outcomeText() {
  if (!isPlanned()) return "The policy cannot be planned.";
  const {plan} = store.state;
  const peaks =
    Object.entries(plan.devices).map(([name, device]) => `${name} peak ${bytesText(device.peak)}`);
  return [...peaks, `step ${msText(plan.time.step_ms)}`, plan.fits ? "fits" : "does not fit"].join(", ");
}

function edit(change) {
  return inOrder(async () => {
    const before = takeState(await post("edit", {revision: revision(), ...change}));
    if (before.revision === revision()) return showStatus("Nothing to change: the plan is so already.");
    announce(`${store.state.last_edit}: ${outcomeText()}`);
  });
}

/// Places parts of the tree: set is { on: "gpu" }, { acts: "recompute" }; null takes an attribute away.
const place = (parts, set) => edit({place: {items: parts.map(part => part.id), set}});

const addRule = text => edit({add: text});

const removeRule = rule => edit({rule: {at: rule.at, filters: rule.filters, remove: true}});

function step(name) {
  return inOrder(async () => {
    takeState(await post(name, {revision: revision()}));
    announce(`${name === "undo" ? "Undone" : "Done again"}: ${outcomeText()}`);
  });
}

function undo() {
  if (store.state.undo) step("undo");
}

function redo() {
  if (store.state.redo) step("redo");
}

/// What rules may set by a click, with the values there are.
function attribute(key) {
  return store.model.attributes.find(one => one.key === key);
}

/// The choices for a part: what a person sees, the key of the rule, the values.
function choicesOf(part) {
  const names = devices().map(device => device.name);
  const stored = part.inside.some(isStored), trained = part.inside.some(one => one.trains);
  const computes = part.inside.some(one => !isStored(one));
  const acts = attribute("acts");
  return [
    computes && stored && {key: "on", name: "Everything", values: names},
    computes && {key: "run", name: "Compute", values: names},
    stored && {key: "param", name: "Parameters", values: names},
    trained && {key: "state", name: "Optimizer state", values: names},
    computes && acts && acts.values && {key: "acts", name: "Activations", values: acts.values},
  ].filter(Boolean);
}
