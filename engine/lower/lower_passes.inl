// The lowering passes in the order in which they run. TANDEM_LOWER_PASS(name): `PlacedGraph
// name(PlacedGraph, const LowerContext&)` of engine/lower/, which `--without name` leaves out;
// TANDEM_REQUIRED_PASS(name): one that nothing leaves out.

// First: clones get casts, copies and layouts like the nodes that they are made from.
TANDEM_LOWER_PASS(recompute)
// After the clones of lookups are there; before everything that moves rows or casts.
TANDEM_REQUIRED_PASS(split_tables)
// Before everything that looks at where values are made.
TANDEM_REQUIRED_PASS(place_collectives)
// Before casts, which would stand between lookups and their readers.
TANDEM_LOWER_PASS(ship_rows)
// After the clones are there; before copies, so that a cast stands where the link carries 16
// bits.
TANDEM_REQUIRED_PASS(precision)
// After precision has given weights their types: what moves is the weight, not the master.
TANDEM_REQUIRED_PASS(place_parameters)
// After everything that decides where a value is made or read; from here on nothing crosses
// but Transfers, so that the passes below merge nodes of one device only.
TANDEM_REQUIRED_PASS(add_transfers)
// After the cut: a copy to the host that is there already serves, too.
TANDEM_LOWER_PASS(offload_activations)
// After all that decides what backward reads: a gradient whose logits are made again or come
// back from the host stays apart, so that neither room nor bits change.
TANDEM_LOWER_PASS(losses_with_gradients)
// Before all that looks for Slices.
TANDEM_LOWER_PASS(split_views)
// After Split is Slice; before slice_gradients, for which it makes SliceGrads.
TANDEM_LOWER_PASS(constant_gathers)
// Before epilogues and updates: they look at the product next to them, not at a Transpose.
TANDEM_LOWER_PASS(transposed_products)
// After every SliceGrad is there; before fuse, which would take their sums.
TANDEM_LOWER_PASS(slice_gradients)
// Before product_updates, which takes products without an epilogue; before fuse, which takes
// what no product wants.
TANDEM_LOWER_PASS(product_epilogues)
// As above.
TANDEM_LOWER_PASS(convolution_epilogues)
// After the epilogues; before group_updates, which takes the updates that are left.
TANDEM_LOWER_PASS(product_updates)
// Before fuse, which would take the casts.
TANDEM_LOWER_PASS(widen_lookups)
// After all that makes gradients of lookups something else.
TANDEM_LOWER_PASS(grouped_sums)
// Before fuse, which would take the sums.
TANDEM_LOWER_PASS(cached_sums)
// After all that gives an element-wise node a better place.
TANDEM_LOWER_PASS(fuse)
// After fuse, when it is known which nodes gradients come from.
TANDEM_LOWER_PASS(group_updates)
// After group_updates, when the parameters' readers are what they will be: it asks for their
// layouts.
TANDEM_LOWER_PASS(gather_in_place)
// As above; after everything that merges updates.
TANDEM_LOWER_PASS(bucket_collectives)
// After merging, which changes what outputs lie in.
TANDEM_REQUIRED_PASS(output_copies)
// After the last pass that adds nodes: it orders the ones there are.
TANDEM_LOWER_PASS(early_updates)
// Last: it counts uses in the order that will run.
TANDEM_LOWER_PASS(order_copies)

#undef TANDEM_LOWER_PASS
#undef TANDEM_REQUIRED_PASS
