// float32 rows to and from halves. Included by vector_rows_*.cpp, after row_access.inl.

void join_row(const Half* top, const std::int16_t* tail, float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(x + i, load_split(top + i, tail + i));
  for (; i < n; ++i) x[i] = join_one(top[i], tail[i]);
}

void split_row(const float* x, Half* top, std::int16_t* tail, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store_split(load(x + i), top + i, tail + i);
  for (; i < n; ++i) split_one(x[i], top + i, tail + i);
}
