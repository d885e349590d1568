// The table of nested modules. Only rows in sight are elements, so that thousands cost nothing.

const rowHeight = 26;
const table = {
  grid: null,
  head: null,
  body: null,
  rows: [],
  most: 1
};

/// The columns with what their numbers are.
const columns = [
  ["Module", ""], ["Device", "Where its operators run"], ["Share", "Its part of what sizes stand for"],
  [
    "Time",
    "Time of its kernels in a step. Devices work at the same time, so that all times together can be more than the step"
  ],
  ["Parameters", "Bytes of its parameters"], ["State", "Bytes of their optimizer state"],
  ["Activations", "Bytes of results that are kept for backward"],
  [
    "Copies",
    "Bytes of the copies between devices that begin or end in it. One between two modules is in both rows, and once in the row above them"
  ]
];

function gridCell(content, kind = "number", properties = {}) {
  return element("span", {role: "gridcell", class: kind, ...properties}, content);
}

/// A size, with the colours of the devices where it lies unless that is where it computes.
function sizeCell(totals, measure) {
  if (!totals.sum[measure]) return gridCell("");
  const where = totals.by[measure];
  const elsewhere =
    onlyDevice(where) === "" || (totals.run.size > 0 && onlyDevice(where) !== onlyDevice(totals.run));
  const names = [...where.keys()];
  return gridCell([
    elsewhere && mixedDot(where),
    elsewhere && element("span", {class: "unseen"}, `on ${names.join(" and ")}: `),
    bytesText(totals.sum[measure])
  ]);
}

function nameCell(part) {
  const isOpen = store.open.has(part), match = matchOf(part);
  const twist = element("i", {class: "twist", "aria-hidden": "true"}, folds(part) && (isOpen ? "▾" : "▸"));
  return element(
    "span", {role: "rowheader", class: "name", style: {"padding-left": `${4 + 14 * part.depth}px`}}, twist,
    element("span", {class: "label", title: part.path}, part.name), element("small", {}, typeText(part)),
    folds(part) && !isOpen && match.count > 0 && element("small", {class: "found"}, `${match.count} found`));
}

function deviceCell(totals) {
  if (!totals.run.size) return gridCell("", "run");
  return gridCell(
    [mixedDot(totals.run), devicesText(totals.run)], "run",
    {title: [...totals.run].map(([name, count]) => `${counted(count, "operator")} on ${name}`).join(", ")});
}

function crossingCell(part) {
  const crossing = crossingOf(part);
  if (!crossing.bytes) return gridCell("");
  return gridCell(
    [
      element("i", {class: crossing.exposed > 0 ? "cross exposed" : "cross", "aria-hidden": "true"}),
      bytesText(crossing.bytes), element("span", {class: "unseen"}, `, ${exposedText(crossing.exposed)}`)
    ],
    "number", {title: crossing.text});
}

function rowClasses(part) {
  const crossing = crossingOf(part);
  return [
    "row", part.kind, store.selection === part && "is-selected", matchOf(part).whole && "is-match",
    part.parent && crossing.enters && (crossing.entersExposed ? "is-boundary exposed" : "is-boundary")
  ].filter(Boolean)
    .join(" ");
}

function tableRow(part, index) {
  const totals = totalsAt(part), isOpen = store.open.has(part);
  return element(
    "div", {
      role: "row",
      id: `row-${part.id}`,
      class: rowClasses(part),
      draggable: isReadOnly() ? null : "true",
      style: {top: `${index * rowHeight}px`},
      "aria-level": part.depth + 1,
      "aria-rowindex": index + 2,
      "aria-selected": String(store.selection === part),
      "aria-expanded": folds(part) ? String(isOpen) : null,
      "data-item": part.id
    },
    nameCell(part), deviceCell(totals),
    gridCell(folds(part) && isOpen ? "" : stackOf(totals.by[store.measure], table.most), "share"),
    gridCell(totals.sum.ms ? msText(totals.sum.ms) : ""), sizeCell(totals, "parameters"),
    sizeCell(totals, "states"), sizeCell(totals, "activations"), crossingCell(part));
}

/// Shows the rows in sight, and the selected one for screen readers wherever it is.
function paintRows() {
  const place = byId("view"), {rows} = table;
  const first = Math.max(0, Math.floor(place.scrollTop / rowHeight) - 8);
  const last = Math.min(rows.length, Math.ceil((place.scrollTop + place.clientHeight) / rowHeight) + 8);
  const at = rows.indexOf(store.selection);
  const shown = rows.slice(first, last).map((part, i) => tableRow(part, first + i));
  if (at >= 0 && (at < first || at >= last)) shown.push(tableRow(rows[at], at));
  table.body.replaceChildren(...shown);
  if (at >= 0)
    table.grid.setAttribute("aria-activedescendant", `row-${rows[at].id}`);
  else
    table.grid.removeAttribute("aria-activedescendant");
}

function scrollToRow(index) {
  const place = byId("view"), top = index * rowHeight, headHeight = table.head.offsetHeight;
  if (top < place.scrollTop)
    place.scrollTop = top;
  else if (top + rowHeight + headHeight > place.scrollTop + place.clientHeight) {
    place.scrollTop = top + rowHeight + headHeight - place.clientHeight;
  }
}

/// The part whose element, with its `data-item`, an event comes from.
function partAt(event) {
  const found = event.target.closest("[data-item]");
  return found ? store.tree.parts[Number(found.dataset.item)] : null;
}

function clickRow(event) {
  const part = partAt(event);
  if (!part) return;
  select(part);
  if (event.target.closest(".twist")) toggle(part);
}

/// Opens the menu of the part that an event comes from.
function contextMenu(event, opener) {
  const part = partAt(event);
  if (!part) return;
  event.preventDefault();
  select(part);
  openMenu(part, event.clientX, event.clientY, opener);
}

/// A place for pictures of parts: a click selects one, a double click is for `open`.
function picturePlace(properties, open, keydown) {
  const withPart = act => event => {
    const part = partAt(event);
    if (part) act(part);
  };
  const place = element("div", {
    tabindex: "0",
    "data-key": "view",
    ...properties,
    on: {
      click: withPart(select),
      dblclick: withPart(open),
      contextmenu: event => contextMenu(event, place),
      keydown
    }
  });
  return place;
}

function menuAtRow() {
  const box = (table.body.querySelector(".is-selected") || table.grid).getBoundingClientRect();
  openMenu(store.selection, box.left + 60, box.bottom, table.grid);
}

/// Makes the table's fixed parts in `place`.
function makeTable(place) {
  table.head = element("div", {role: "rowgroup", class: "head"});
  table.body = element("div", {role: "rowgroup", class: "body"});
  table.grid = element(
    "div", {
      role: "treegrid",
      class: "grid",
      tabindex: "0",
      "data-key": "view",
      "aria-label": "Modules of the model",
      "aria-colcount": columns.length,
      on: {
        click: clickRow,
        dblclick: event => {
          const part = partAt(event);
          if (part && !event.target.closest(".twist")) toggle(part);
        },
        contextmenu: event => contextMenu(event, table.grid),
        keydown: event => rowKeys(
          event, table.rows,
          {menu: menuAtRow, page: Math.max(1, Math.floor(place.clientHeight / rowHeight) - 2)}),
      }
    },
    table.head, table.body);
  makeDragSource(table.grid, partAt);
  place.onscroll = paintRows;
  return table.grid;
}

/// Shows the current state; the selected row comes into sight if `follow`.
function showTable(follow) {
  table.rows = visibleRows();
  table.most = Math.max(
    1e-12,
    ...table.rows.filter(part => !folds(part) || !store.open.has(part))
      .map(part => totalsAt(part).sum[store.measure]));
  table.head.replaceChildren(element(
    "div", {role: "row", class: "row", "aria-rowindex": 1},
    columns.map(
      ([name, help], i) => element(
        "span", {role: "columnheader", class: ["", "", "share"][i] ?? "number", title: help || null},
        name))));
  table.grid.setAttribute("aria-rowcount", table.rows.length + 1);
  table.body.style.height = `${table.rows.length * rowHeight}px`;
  const at = table.rows.indexOf(store.selection);
  if (follow && at >= 0) scrollToRow(at);
  paintRows();
}
