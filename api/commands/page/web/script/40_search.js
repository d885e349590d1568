// Searches by selector: what a rule would match is highlighted while it is typed.

const search = {
  at: "",
  filters: {},
  error: null,
  timer: 0,
  asked: 0
};
const filterKeys = [
  ["op", "type of operator"], ["min", "least bytes, 1MiB"], ["after", "depends on"],
  ["before", "is needed by"]
];

const usedFilters = () => Object.fromEntries(Object.entries(search.filters).filter(([, value]) => value));

/// A path is what is at and below it; a word without any sign of a selector finds every path that has it.
function selectorOfSearch() {
  const text = search.at.trim();
  if (!text) return "";
  const part = store.tree.parts.find(one => one.path === text);
  if (part) return part.at;
  return /[*?{}:[\]]/.test(text) ? text : `**.*${text}*.**`;
}

/// Highlights what a rule matches; the rule shows in the search, too.
function searchFor(at, filters = {}) {
  search.at = at;
  search.filters = {...filters};
  showSearch();
  runSearch();
}

async function runSearch() {
  const asked = ++search.asked, at = selectorOfSearch(), filters = usedFilters();
  search.error = null;
  if (!at && !Object.keys(filters).length) return setMatch(null);
  try {
    const found = await post("match", {at: at || "**", ...filters});
    if (asked !== search.asked) return;
    setMatch({
      at: at || "**",
      filters,
      items: new Set([...found.operators, ...found.parameters]),
      text: found.text,
      nearest: found.nearest
    });
  } catch (error) {
    if (asked !== search.asked) return;
    search.error = error;
    setMatch(null);
  }
}

function setMatch(match) {
  choose("match", match);
  showMatch();
}

function showMatch() {
  const {match} = store, output = byId("match");
  const none = match && !match.items.size;
  output.replaceChildren(
    ...
      [search.error && element("span", {class: "bad"}, (search.error.diagnostics[0] || search.error).message),
       match && element("span", {class: none ? "bad" : ""}, none ? "matches nothing" : match.text),
       match && match.at !== search.at.trim() && !none &&
         element("span", {class: "quiet"}, " as ", element("code", {}, match.at)),
       none && match.nearest &&
         [" — ", button(`search ${match.nearest}`, () => searchFor(match.nearest), {class: "plain"})],
       match && !none && !isReadOnly() && isPlanned() && [" — place them: ", matchChoices(match)],
  ].flat(3)
        .filter(Boolean));
}

/// Buttons that write one rule for all that is matched.
function matchChoices(match) {
  const select = element("select", {"aria-label": "What to place", "data-key": "match-key"}, [
    ["on", "everything"], ["run", "compute"], ["param", "parameters"], ["state", "optimizer state"],
    ["acts", "activations"]
  ].map(([key, name]) => element("option", {value: key}, name)));
  const values = element("span", {class: "choices", role: "group", "aria-label": "Where to"});
  const fillValues = () => values.replaceChildren(
    ...(select.value === "acts" ? attribute("acts").values : devices().map(device => device.name))
      .map(
        value => button(
          value, () => edit({rule: {at: match.at, filters: match.filters, set: {[select.value]: value}}}),
          {"data-key": `match-${value}`})));
  select.addEventListener("change", fillValues);
  fillValues();
  return [select, " ", values];
}

function filterField(key, hint) {
  return element("input", {
    type: "text",
    id: `filter-${key}`,
    class: "filter",
    "data-key": `filter-${key}`,
    "aria-label": `Filter ${key}: ${hint}`,
    placeholder: `${key}: ${hint}`,
    value: search.filters[key] || "",
    spellcheck: "false",
    autocomplete: "off",
    on: {
      input: event => {
        search.filters[key] = event.target.value.trim();
        later();
      }
    }
  });
}

function later() {
  clearTimeout(search.timer);
  search.timer = setTimeout(runSearch, 120);
}

function showSearch() {
  const filters = search.filters;
  refill(
    byId("search-bar"), element("input", {
      type: "text",
      id: "search",
      "data-key": "search",
      "aria-label": "Selector or part of a path",
      value: search.at,
      placeholder: "Search: layer4, **.conv?.**, blocks.{0..5}.**, **:weight   ( / )",
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": "match",
      on: {
        input: event => {
          search.at = event.target.value;
          later();
        }
      }
    }),
    element(
      "details", {open: Object.keys(usedFilters()).length > 0}, element("summary", {}, "Filters"),
      filterKeys.map(([key, hint]) => filterField(key, hint))),
    button(
      "Clear",
      () => {
        searchFor("");
        byId("search").focus();
      },
      {class: "plain", "aria-label": "Clear the search"}),
    element("output", {id: "match", "for": "search"}));
  search.filters = filters;
  showMatch();
}

function startSearch() {
  const bar = byId("search-bar");
  bar.addEventListener("submit", event => event.preventDefault());
  bar.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      searchFor("");
      goToModel();
    }
    if (event.key === "Enter" && event.target.matches("input")) revealMatch();
  });
  listen(["state"], () => {
    if (store.match) runSearch();
  });
  showSearch();
}

/// Unfolds what is around the first match of what is typed, selects it, and brings it into sight.
async function revealMatch() {
  clearTimeout(search.timer);
  await runSearch();
  const first = store.match && store.tree.parts.find(part => store.match.items.has(part.id));
  if (!first) return;
  const shown = shownAs(first);
  reveal(shown);
  select(shown);
  changed("view");
  document.querySelector("#view [data-key=view]").focus();
}
