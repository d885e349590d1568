// The tabs with all about the plan, of which one is shown.

const tabs = {
  step: {name: "Step", show: showStep},
  copies: {name: "Copies", show: showCopies},
  advice:
    {name: "Advice", show: showAdvice, count: () => store.state.plan.hints.length + ownWarnings().length},
  auto: {name: "Search", show: showAuto, hidden: () => isReadOnly()},
  rules: {name: "Rules", show: showRules},
  ranks: {name: "Ranks", show: showRanks, hidden: () => !(store.model.ranks > 1)},
  measured: {name: "Measured", show: showMeasured, hidden: () => !store.model.has_run},
  live: {name: "Curves", show: showLive, hidden: () => !store.model.has_run},
};

const shownTabs = () => Object.keys(tabs).filter(key => !tabs[key].hidden || !tabs[key].hidden());

function tabKeys(event) {
  const keys = shownTabs(), at = keys.indexOf(store.tab);
  const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose("tab", keys[(to + keys.length) % keys.length]);
  byId(`tab-${store.tab}`).focus();
}

function showTabs() {
  refill(byId("tabs"), shownTabs().map(key => {
    const tab = tabs[key], isShown = store.tab === key, count = tab.count && isPlanned() ? tab.count() : 0;
    return element(
      "button", {
        type: "button",
        role: "tab",
        id: `tab-${key}`,
        "data-key": `tab-${key}`,
        "aria-selected": String(isShown),
        "aria-controls": "panel",
        tabindex: isShown ? "0" : "-1",
        on: {click: () => choose("tab", key)}
      },
      tab.name, count > 0 && [" ", element("span", {class: "count"}, String(count))]);
  }));
  byId("panel").setAttribute("aria-labelledby", `tab-${store.tab}`);
}

/// Fills the panel; a tab of which nothing can be shown without a plan says so.
function showPanel() {
  showTabs();
  const panel = byId("panel");
  if (!isPlanned() && store.tab !== "rules")
    return refill(panel, element("p", {class: "quiet"}, "There is no plan. Rules shows why."));
  tabs[store.tab].show(panel);
}

function startTabs() {
  byId("tabs").addEventListener("keydown", tabKeys);
  listen(["state", "tab"], showPanel);
}
