// Shows where each item of the model is: a table of paths and devices.
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token") ?? "";
sessionStorage.setItem("token", token);
history.replaceState(null, "", location.pathname);

async function get(path) {
  const answer = await fetch(path, { headers: { "X-Tandem-Token": token } });
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error.message);
  return json;
}

try {
  const model = await get("/api/model");
  const state = await get("/api/state");
  document.getElementById("status").textContent = state.file.path;
  const rows = document.getElementById("items");
  model.items.forEach((item, index) => {
    const row = rows.insertRow();
    const placed = state.placement?.[index];
    row.insertCell().textContent = item.path || item.name;
    row.insertCell().textContent = item.kind;
    row.insertCell().textContent = placed ? (placed.run ?? placed.param) : "";
  });
} catch (error) {
  document.getElementById("status").textContent = error.message;
}
