// The menu of a part: places it, or shows it elsewhere.

let menuOpener = null;

/// `isChosen`: whether it holds already; undefined for what is no choice.
function menuItem(text, act, keys, device, isChosen) {
  return element(
    "button", {
      type: "button",
      role: isChosen === undefined ? "menuitem" : "menuitemradio",
      "aria-checked": isChosen === undefined ? null : String(isChosen),
      tabindex: "-1",
      on: {
        click: () => {
          closeMenu();
          act();
        }
      }
    },
    device && dotOf(device), text, keys && element("kbd", {"aria-hidden": "true"}, keys));
}

function menuItems(part) {
  const items = [];
  if (!isReadOnly() && isPlanned()) {
    for (const choice of choicesOf(part)) {
      if (items.length) items.push(element("hr", {role: "separator"}));
      choice.values.forEach(
        (value, i) => items.push(menuItem(
          choice.key === "acts" ? `Activations: ${value}` : `${choice.name} on ${value}`,
          () => place([part], {[choice.key]: value}), choice.key === "on" && i < 9 ? String(i + 1) : "",
          choice.key === "acts" ? "" : value, isChosenAt(part, choice, value))));
    }
    items.push(
      element("hr", {role: "separator"}), menuItem("As the other rules say", () => clearPart(part), "Del"),
      element("hr", {role: "separator"}));
  }
  items.push(menuItem("Why is it there?", () => {
               select(part);
               explain(part);
             }, "e"), menuItem("Show in the graph", () => {
               select(part);
               choose("view", "graph");
             }));
  return items;
}

/// Takes away what rules for exactly this part set.
function clearPart(part) {
  const computes = part.inside.some(one => !isStored(one));
  return place([part], computes ? {on: null, acts: null} : {on: null});
}

function openMenu(part, x, y, opener) {
  const menu = byId("menu");
  menuOpener = opener;
  menu.setAttribute("aria-label", part.path || part.name);
  menu.replaceChildren(
    element("div", {class: "title", role: "presentation"}, part.path || part.name), ...menuItems(part));
  menu.hidden = false;
  menu.style.left = `${Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 8))}px`;
  menu.querySelector("[role^=menuitem]").focus();
}

function closeMenu() {
  byId("menu").hidden = true;
  if (menuOpener && menuOpener.isConnected) menuOpener.focus({preventScroll: true});
  menuOpener = null;
}

function menuKeys(event) {
  const items = [...byId("menu").querySelectorAll("[role^=menuitem]")];
  const at = items.indexOf(document.activeElement);
  const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1}[event.key];
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    closeMenu();
  } else if (to !== undefined) {
    event.preventDefault();
    items[(to + items.length) % items.length].focus();
  }
  event.stopPropagation();
}

function startMenu() {
  byId("menu").addEventListener("keydown", menuKeys);
  addEventListener("pointerdown", event => {
    if (!byId("menu").hidden && !byId("menu").contains(event.target)) closeMenu();
  });
}
