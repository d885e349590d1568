// Starts the page: reads the model and the policy, then shows everything.

async function start() {
  store.model = await get("model");
  store.tree = treeOf(store.model);
  store.open.add(store.tree.root);
  if (isReadOnly() && store.model.has_run) store.tab = "live";
  startMenu();
  startWhy();
  startSummary();
  startViews();
  startSearch();
  startInspector();
  startTabs();
  startStep();
  startKeys();
  await fetchState();
  startMeasured();
  startLive();
  startFile();
  if (store.state.ok) select(store.tree.root);
  document.body.dataset.ready = "true";
}

start().catch(error => {
  document.title = "Placement";
  showNotice(error, "");
});
