// Shows the difference to the saved file and the consequences before anything is written.

function movesOf(compared) {
  const groups = (compared && compared.groups) || [];
  if (!groups.length) return element("p", {class: "quiet"}, "Nothing moves between devices.");
  return element(
    "ul", {class: "moves"},
    groups.map(
      group => element(
        "li", {}, element("code", {}, group.at), ": ",
        group.moves.map(
          (move, i) =>
            [i > 0 && "; ", `${attributeNames[move.attribute] || move.attribute} `,
             valueTag(move.attribute, move.from), " → ", valueTag(move.attribute, move.to)]),
        element("small", {}, ` ${groupText(group)}`))));
}

const attributeNames = {
  run: "compute",
  param: "parameters",
  state: "optimizer state",
  acts: "activations"
};

const valueTag = (name, value) => ["run", "param", "state"].includes(name) ? deviceTag(value) : value;

const groupText = group => ["operators", "parameters", "buffers", "added"]
                             .filter(kind => group[kind])
                             .map(kind => kindText(kind.replace(/s$/, ""), group[kind]))
                             .join(", ");

function comparisonTable(compared) {
  if (!compared) return null;
  const row = (name, {a, b}, text) => element(
    "tr", {}, element("th", {scope: "row"}, name), element("td", {class: "number"}, text(a)),
    element("td", {class: "number"}, text(b)), element("td", {class: "number"}, delta(a, b, text) || "same"));
  return element(
    "table", {class: "compared"},
    element(
      "thead", {},
      element(
        "tr", {},
        ["", "saved", "new", "change"].map(
          (name, i) => element("th", {scope: "col", class: i ? "number" : ""}, name)))),
    element(
      "tbody", {}, row("step", compared.time.step_ms, msText),
      row("copies", compared.transfers.bytes, bytesText),
      Object.entries(compared.devices).map(([name, device]) => row(`${name} peak`, device.peak, bytesText))));
}

/// The reasons of changed rules: they were written for what the rule said before.
function oldReasons(lines) {
  const reasonOf = line => (/\bwhy\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')/.exec(line.text) || [])[1];
  const reasons = kind => lines.filter(line => line.kind === kind).map(reasonOf).filter(Boolean);
  const before = reasons("removed");
  return reasons("added").filter(reason => before.includes(reason));
}

/// Opens the difference once all edits have been answered.
function reviewWhenDone() {
  lastRequest.then(() => openReview());
}

/// `disk`: what is in the file where it is not what this page last read.
function openReview(disk = null) {
  const {state} = store, dialog = byId("review");
  const lines = disk ? disk.difference : state.difference;
  const close = () => dialog.close();
  refill(
    dialog,
    element(
      "h2", {id: "review-title"},
      disk ? `${state.file.name} was changed by somebody else` : `Save ${state.file.name}`),
    disk &&
      element(
        "p", {},
        disk.exists ? "Below is what your text changes in the file as it is on disk."
                    : "The file is not there any more. Saving writes it again."),
    !disk && !state.file.exists && element("p", {}, "The file does not exist yet."),
    lines.length ? differenceBlock(lines, [], 3) : element("p", {class: "quiet"}, "The text is the same."),
    oldReasons(lines).map(
      reason => element(
        "p", {class: "reason"}, "The reason ", element("code", {}, reason),
        " of a rule that you changed may no longer hold: check it in the file.")),
    !disk && [element("h3", {}, "What moves"), movesOf(state.compared), comparisonTable(state.compared)],
    state.ok && !state.plan.fits &&
      element("p", {class: "bad"}, "This plan does not fit; a run would be refused."),
    element(
      "div", {class: "bar"}, button("Go on editing", close, {"data-key": "cancel"}),
      disk && disk.exists && button("Take the file's text", () => {
        close();
        reloadFile();
      }), button(disk ? disk.exists ? "Write over it" : "Write it again" : "Save", () => {
        close();
        save(disk ? disk.sha256 : undefined);
      }, {class: "main", "data-key": "confirm"})));
  dialog.setAttribute("aria-labelledby", "review-title");
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(disk ? "[data-key=cancel]" : "[data-key=confirm]").focus();
}

/// Writes the text. `over`: the version on disk that a person has seen and writes over.
function save(over) {
  return inOrder(async () => {
    try {
      takeState(
        await post("save", over === undefined ? {revision: revision()} : {revision: revision(), over}));
      announce(`${store.state.file.name} is saved.`);
    } catch (error) {
      if (error.code !== "file_changed") throw error;
      openReview(error.disk);
    }
  });
}

function reloadFile() {
  return inOrder(async () => {
    takeState(await post("reload", {revision: revision()}));
    announce(`The text of ${store.state.file.name} was taken over. Undo brings back yours.`);
  });
}
