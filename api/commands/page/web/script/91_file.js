// The head of the page: which file, whether it is saved, undo, redo, save; watches the file.

let diskIsOther = false, fileTimer = 0;

/// How many lines differ; one that has become another counts once.
function changedLines(lines) {
  let count = 0, added = 0, removed = 0;
  for (const {kind} of [...lines, {kind: "same"}]) {
    if (kind === "added") ++added;
    if (kind === "removed") ++removed;
    if (kind !== "same") continue;
    count += Math.max(added, removed);
    added = removed = 0;
  }
  return count;
}

function statusText() {
  const {file} = store.state;
  if (isReadOnly()) return ["read only", ""];
  if (diskIsOther) return ["changed on disk", "bad"];
  if (!file.exists && file.saved) return ["new file", ""];
  const changes = changedLines(store.state.difference);
  return file.saved ? ["saved", ""] : [`${counted(changes, "line")} not saved`, "edited"];
}

function showHead() {
  const {state, model} = store;
  byId("title").replaceChildren(
    state.file.name,
    element(
      "span", {}, ` for ${store.tree.root.name}`, model.batch ? `, batch ${model.batch}` : "",
      model.ranks > 1 ? `, one of ${model.ranks} ranks` : ""));
  document.title = `${state.file.saved ? "" : "● "}${state.file.name} — placement`;
  const [text, kind] = statusText(), status = byId("file-status");
  status.className = `pill ${kind}`;
  if (status.textContent !== text) {
    const shows = kind === "edited" && button(text, reviewWhenDone, {class: "plain", title: "what has changed"});
    status.replaceChildren(shows || text);
  }
  refill(
    byId("file-actions"),
    !isReadOnly() &&
      [
        button("Undo", undo, {disabled: !state.undo, title: "Ctrl+Z", "aria-keyshortcuts": "Control+Z"}),
        button(
          "Redo", redo,
          {disabled: !state.redo, title: "Ctrl+Shift+Z", "aria-keyshortcuts": "Control+Shift+Z"}),
        button("Save…", reviewWhenDone, {
          class: "main",
          disabled: state.file.saved && state.file.exists && !diskIsOther,
          title: "Ctrl+S",
          "aria-keyshortcuts": "Control+S"
        })
      ],
    button("Keys", openHelp, {title: "?"}));
}

/// Tells of a file that is not what this page last read or wrote.
function showDiskNotice(file) {
  const notice = byId("notice");
  if (!diskIsOther) {
    if (notice.dataset.of === "disk") refill(notice);
    return;
  }
  notice.dataset.of = "disk";
  refill(
    notice,
    element(
      "div", {class: "notice"},
      element(
        "p", {},
        file.exists
          ? `${store.state.file.name} was changed outside of this page.`
          : `${store.state.file.name} is no longer on disk. Your text is kept here; Save writes it again.`),
      file.exists && button("Take its text", reloadFile),
      file.exists && button("Keep mine", () => refill(notice), {class: "plain"})));
}

async function pollFile() {
  clearTimeout(fileTimer);
  if (!document.hidden) {
    try {
      const file = await get("file");
      if (file.revision !== undefined && file.revision !== revision()) await fetchState();
      if (file.changed_on_disk !== diskIsOther) {
        diskIsOther = file.changed_on_disk;
        showDiskNotice(file);
        showHead();
      }
    } catch (error) { showNotice(error, ""); }
  }
  fileTimer = setTimeout(pollFile, 2000);
}

/// A line at the foot of the window, until the next action.
function showStatus(text) {
  const line = byId("status-line");
  if (line.textContent !== text) line.textContent = text;
}

/// Shows why something was refused, until the next action; null takes it away. `what`: what the
/// message is about.
function showNotice(error, what = "Not done: ") {
  showStatus("");
  const notice = byId("notice");
  if (!error) {
    if (notice.dataset.of === "error") refill(notice);
    return;
  }
  notice.dataset.of = "error";
  const details = error.diagnostics || [];
  refill(
    notice,
    element(
      "div", {class: "notice"}, element("p", {}, what && element("b", {}, what), error.message),
      details.length > 1 && element("ul", {}, details.map(diagnosticItem)),
      button("Close", () => refill(notice), {class: "plain"})));
}

function startFile() {
  for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => showStatus(""), true);
  showHead();
  listen(["state"], () => {
    if (store.state.file.changed_on_disk !== undefined && !store.state.file.changed_on_disk && diskIsOther) {
      diskIsOther = false;
      showDiskNotice({});
    }
    showHead();
  });
  addEventListener("beforeunload", event => {
    if (store.state && !store.state.file.saved && !isReadOnly()) event.preventDefault();
  });
  if (!isReadOnly()) {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) pollFile();
    });
    pollFile();
  }
}
