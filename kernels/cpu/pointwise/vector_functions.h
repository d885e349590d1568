// The inner loops of the pointwise kernels, compiled once for each instruction set: a table of
// plain functions. All of them work on float32 with unit stride and take any length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"

namespace tandem {

// The steps of the tile interpreter that are added to those of the scalar functions, each of which
// has one by its name; tile_NAME in tile_functions.inl is the code of each. a, b, c are operands, s
// and t numbers fixed when it was compiled: for a scalar function its attributes. round_* keep
// float32, but only the numbers that 16 bits hold.
#define TANDEM_TILE_OPS(OP)                     \
  OP(copy)                                      \
  OP(is_true) /* a != 0 */                      \
  OP(square)                                    \
  OP(cube)                                      \
  OP(power_of_half) /* a to the power 1/2 */    \
  OP(scale_shift)   /* a s + t */               \
  OP(add_number)                                \
  OP(multiply_number)                           \
  OP(from_number)      /* s - a */              \
  OP(divide_by_number) /* a / s */              \
  OP(divide_number)    /* s / a */              \
  OP(pow)                                       \
  OP(pow_number)    /* a to the power s */      \
  OP(add_relu)      /* max(a + b, 0) */         \
  OP(scaled_add)    /* a s + b */               \
  OP(where)         /* a ? b : c */             \
  OP(multiply_add)  /* a b + c */               \
  OP(multiply3)     /* a b c */                 \
  OP(from_uint8)    /* a is of that type */     \
  OP(from_int32)    /* and here */              \
  OP(from_int64)    /* and here */              \
  OP(to_bool)       /* y is of bytes 0 and 1 */ \
  OP(from_bfloat16) /* a is of that type */     \
  OP(to_bfloat16)   /* and y here */            \
  OP(from_float16)  /* a is of that type */     \
  OP(to_float16)    /* and y here */            \
  OP(round_bfloat16)                            \
  OP(round_float16)

enum class TileOp : std::uint8_t {
#define TANDEM_ENUMERATOR(name) name,
  TANDEM_TILE_OPS(TANDEM_ENUMERATOR)
#undef TANDEM_ENUMERATOR
#define TANDEM_FUNCTION(function, ...) function,
#include "engine/operators/scalar_functions.inl"
      count
};

struct TileCall {
  const float* a;
  const float* b;
  const float* c;
  float* y;
  std::int64_t n;
  float s, t;
};
using TileFunction = void (*)(const TileCall&);

// The steps of scalar functions by their scalar code, in scalar_tiles.cpp. Those of
// tile_functions.inl hide them, where there are any.
#define TANDEM_FUNCTION(function, ...) void tile_##function(const TileCall& call);
#include "engine/operators/scalar_functions.inl"

struct VectorFunctions {
  TileFunction tile[static_cast<std::size_t>(TileOp::count)];

  // Reductions of n elements.
  double (*sum)(const float* x, std::int64_t n);
  float (*maximum)(const float* x, std::int64_t n);
  /// sum += each of `rows` rows of n elements
  void (*add_rows)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                   float* sum);
  void (*max_rows)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                   float* largest);
  /// total += sum, sum = 0
  void (*flush)(float* sum, double* total, std::int64_t n);

  // Softmax over one row.
  /// log(sum(exp(x))); -infinity where all are.
  float (*log_sum_exp)(const float* x, std::int64_t n);
  void (*softmax)(const float* x, float* y, std::int64_t n);
  void (*log_softmax)(const float* x, float* y, std::int64_t n);
  void (*softmax_grad)(const float* dy, const float* y, float* dx, std::int64_t n);
  void (*log_softmax_grad)(const float* dy, const float* y, float* dx, std::int64_t n);
  /// y = factor exp(x - shift) + offset
  void (*scaled_exp)(const float* x, float shift, float factor, float offset, float* y,
                     std::int64_t n);

  // Cross-entropy where the classes are rows `stride` apart, of n columns each.
  /// lse[i] = log(sum(exp(x))) down column i; -infinity where all are.
  void (*columns_log_sum_exp)(const float* x, std::int64_t rows, std::int64_t stride,
                              std::int64_t n, float* lse);
  void (*columns_mean)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                       float* mean);
  /// y = factors[i] (exp(x - lse[i]) - spread), or 0 where weights[i] is; null: no weight is.
  void (*columns_softmax_less)(const float* x, std::int64_t rows, std::int64_t stride,
                               std::int64_t n, const float* lse, const float* weights,
                               const float* factors, float spread, float* y);

  // Layer normalisation over one row.
  void (*layer_norm)(const float* x, const float* scale, const float* bias, float* y,
                     std::int64_t n, float epsilon, float* mean, float* rstd);
  /// Also adds to dscale and dbias where they are not null.
  void (*layer_norm_grad)(const float* dy, const float* x, const float* scale, float mean,
                          float rstd, float* dx, std::int64_t n, float* dscale, float* dbias);

  // Batch normalisation. *_rows: channels innermost, n channels in rows `stride` apart; *_plane: n
  // elements of one channel.
  /// sums[c] += sum(x - shift[c]), squares[c] += sum((x - shift[c])^2)
  void (*moments_rows)(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                       const float* shift, float* sums, float* squares);
  void (*moments_plane)(const float* x, std::int64_t n, float shift, double* sum, double* square);
  /// sums[c] += sum(dy), products[c] += sum(dy (x - mean[c]))
  void (*grad_sums_rows)(const float* dy, const float* x, std::int64_t rows, std::int64_t stride,
                         std::int64_t n, const float* mean, float* sums, float* products);
  void (*grad_sums_plane)(const float* dy, const float* x, std::int64_t n, float mean, double* sum,
                          double* product);
  /// y = x a[c] + b[c]
  void (*affine_rows)(const float* x, float* y, std::int64_t rows, std::int64_t x_stride,
                      std::int64_t y_stride, std::int64_t n, const float* a, const float* b);
  /// dx = dy a[c] + x b[c] + d[c]
  void (*affine2_rows)(const float* dy, const float* x, float* dx, std::int64_t rows,
                       std::int64_t stride, std::int64_t n, const float* a, const float* b,
                       const float* d);
  void (*affine2_plane)(const float* dy, const float* x, float* dx, std::int64_t n, float a,
                        float b, float d);

  // Attention: one row of scores.
  /// Adds mask (may be null); p = exp(x - new maximum); returns the sum of p. `largest` is the
  /// running maximum and is raised; -infinity stays where nothing is visible, and p is then 0.
  float (*online_softmax)(float* x, const float* mask, std::int64_t n, float* largest);
  /// p = exp(x + mask - lse)
  void (*probabilities)(float* x, const float* mask, float lse, std::int64_t n);
  /// ds = p (dp - delta) factor, written over dp
  void (*score_grad)(const float* p, float* dp, float delta, float factor, std::int64_t n);
  float (*dot)(const float* a, const float* b, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);

  /// bfloat16 to float, and to the nearest bfloat16, ties to even.
  void (*widen)(const std::uint16_t* x, float* y, std::int64_t n);
  void (*narrow)(const float* x, std::uint16_t* y, std::int64_t n);
  /// As above, for float16; what is beyond its range becomes infinite.
  void (*widen_float16)(const std::uint16_t* x, float* y, std::int64_t n);
  void (*narrow_float16)(const float* x, std::uint16_t* y, std::int64_t n);

  /// y = mask ? x factor : 0, with mask[i] = random word of element first + i >= threshold.
  void (*dropout)(const float* x, float* y, unsigned char* mask, std::int64_t first, std::int64_t n,
                  std::uint64_t stream, std::uint32_t threshold, float factor);
  void (*dropout_grad)(const float* dy, const unsigned char* mask, float* dx, std::int64_t n,
                       float factor);

  /// y[c][r] = x[r][c] for elements of 4 bytes; strides in elements.
  void (*transpose4)(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                     std::int64_t rows, std::int64_t columns);
};

extern const VectorFunctions vector_functions_base;
extern const VectorFunctions vector_functions_avx2;
extern const VectorFunctions vector_functions_avx512;

inline const VectorFunctions& vector_functions(Isa isa) {
  return isa == Isa::avx512 ? vector_functions_avx512
         : isa == Isa::avx2 ? vector_functions_avx2
                            : vector_functions_base;
}
inline const VectorFunctions& vector_functions(const KernelRequest& request) {
  return vector_functions(isa_of(*request.facts));
}

}  // namespace tandem
