// Panels and products of packed_product.h. Included after gemm_tile.inl.

void pack_panels(const PanelPacking& x) {
  pack(x.to, {x.b, x.b_n, x.b_k, x.n, x.k, 2 * Vector::width});
}

void multiply_panel(const PanelProduct& x) {
  const std::int64_t tiles = std::max<std::int64_t>(1, (x.m + max_rows - 1) / max_rows);
  const std::int64_t height = (x.m + tiles - 1) / tiles;
  Tile t{};
  t.k = x.k;
  t.a_m = x.a_m;
  t.a_k = 1;
  t.b = x.panel;
  t.b_k = 2 * Vector::width;
  t.columns = x.columns;
  t.to.c_line = x.c_m;
  t.to.alpha = 1;
  t.to.accumulate = x.accumulate;
  t.to.activation = Activation::none;
  for (std::int64_t m = 0; m < x.m; m += height) {
    t.a = x.a + m * x.a_m;
    t.to.c = x.c + m * x.c_m;
    tile_function(std::min(height, x.m - m), x.columns > Vector::width ? 2 : 1, true, false)(t);
  }
}
