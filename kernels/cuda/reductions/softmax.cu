// Softmax, LogSoftmax and their gradients along the axis of a dense tensor.
#include "kernels/cuda/reductions/exponentials.h"
#include "kernels/cuda/reductions/reductions.h"

namespace tandem::cuda::reductions {

/// y = exp(x - m) / s or x - m - log(s), where m is the row's largest element and s the sum of
/// exp(x - m). Rows of more than one tile are read twice.
template <class T, int pack, int values, bool whole>
struct SoftmaxRows {
  static constexpr int block_threads = row_threads(whole);

  const T* x;
  T* y;
  Rows rows;
  bool logarithm;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const int size = team * values;
    typename Block::template Private<RowState<values>> state;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      read_rows<pack, whole, values>(block, x, rows, first, false, state);
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        if (row >= rows.count) return;
        RowState<values>& s = state(thread);
        const float shift = logarithm ? std::log(s.all.sum) : 1 / s.all.sum;
        for (std::int64_t start = 0; start < rows.length; start += size) {
          const std::int64_t at = row * rows.length + start;
          const int left = rows.left(start, size);
          if (rows.length > size)
            load_tile<pack>(x + at, left, thread % team, team, no_number(), s.tile);
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) {
            const float below = s.tile.values[i] - s.all.largest;
            s.tile.values[i] = logarithm ? below - shift : std::exp(below) * shift;
          }
          store_tile<pack>(y + at, left, thread % team, team, s.tile);
        }
      });
    }
  }
};

/// Softmax of lines whose elements are not contiguous.
template <class T>
struct SoftmaxLines {
  const T* x;
  T* y;
  Lines lines;
  bool logarithm;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int parts = block.threads() / line_width;
    typename Block::template Private<Exponentials> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * line_width;
         first < lines.count; first += static_cast<std::int64_t>(block.blocks()) * line_width) {
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        float total = 0;
        part(thread) = {no_number(), 0};
        if (line < lines.count)
          part(thread) =
              read_line(x + lines.start(line), lines, thread / line_width, parts, false, total);
      });
      const Exponentials* all = combined_columns(block, part, line_width, JoinExponentials{});
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        if (line >= lines.count) return;
        const Exponentials e = all[thread % line_width];
        const float shift = logarithm ? std::log(e.sum) : 1 / e.sum;
        const std::int64_t start = lines.start(line);
        for (std::int64_t k = thread / line_width; k < lines.length; k += parts) {
          const float below = widened(x[start + k * lines.inner]) - e.largest;
          y[start + k * lines.inner] =
              stored<T>(logarithm ? below - shift : std::exp(below) * shift);
        }
      });
    }
  }
};

/// dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy) for LogSoftmax.
TANDEM_HOST_DEVICE inline float slope(float dy, float y, float sum, bool logarithm) {
  return logarithm ? dy - std::exp(y) * sum : y * (dy - sum);
}

template <class T, int pack, int values, bool whole>
struct SoftmaxGradRows {
  static constexpr int block_threads = row_threads(whole);

  const T* dy;
  const T* y;
  T* dx;
  Rows rows;
  bool logarithm;

  struct State {
    Registers<values> dy, y;
  };

  TANDEM_HOST_DEVICE void load(std::int64_t at, int left, int member, State& s) const {
    load_tile<pack>(dy + at, left, member, rows.team, 0, s.dy);
    load_tile<pack>(y + at, left, member, rows.team, 0, s.y);
  }

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const int size = team * values;
    typename Block::template Private<State> state;
    typename Block::template Private<float> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        float sum = 0;
        for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
          State& s = state(thread);
          load(row * rows.length + start, rows.left(start, size), thread % team, s);
          float own = 0;
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i)
            own += logarithm ? s.dy.values[i] : s.dy.values[i] * s.y.values[i];
          sum += own;
        }
        part(thread) = sum;
      });
      const auto sum = combined<whole>(block, part, team, SumOf{});
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
          State& s = state(thread);
          const std::int64_t at = row * rows.length + start;
          const int left = rows.left(start, size);
          if (rows.length > size) load(at, left, thread % team, s);
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i)
            s.dy.values[i] = slope(s.dy.values[i], s.y.values[i], sum(thread), logarithm);
          store_tile<pack>(dx + at, left, thread % team, team, s.dy);
        }
      });
    }
  }
};

template <class T>
struct SoftmaxGradLines {
  const T* dy;
  const T* y;
  T* dx;
  Lines lines;
  bool logarithm;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int parts = block.threads() / line_width;
    typename Block::template Private<float> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * line_width;
         first < lines.count; first += static_cast<std::int64_t>(block.blocks()) * line_width) {
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        float sum = 0;
        if (line < lines.count) {
          const std::int64_t start = lines.start(line);
          for (std::int64_t k = thread / line_width; k < lines.length; k += parts) {
            const float g = widened(dy[start + k * lines.inner]);
            sum += logarithm ? g : g * widened(y[start + k * lines.inner]);
          }
        }
        part(thread) = sum;
      });
      const float* sums = combined_columns(block, part, line_width, SumOf{});
      block.each([&](int thread) {
        const std::int64_t line = first + thread % line_width;
        if (line >= lines.count) return;
        const std::int64_t start = lines.start(line);
        for (std::int64_t k = thread / line_width; k < lines.length; k += parts) {
          const std::int64_t at = start + k * lines.inner;
          dx[at] = stored<T>(
              slope(widened(dy[at]), widened(y[at]), sums[thread % line_width], logarithm));
        }
      });
    }
  }
};

namespace {

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, const Gpu& gpu,
                                                bool logarithm) {
  const Lines lines =
      lines_of(request.inputs[0], static_cast<std::size_t>(request.attributes().integer("axis")));
  const char* name = logarithm ? "log_softmax" : "softmax";
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const T* x = static_cast<const T*>(a.inputs[0]);
      T* y = static_cast<T*>(a.outputs[0]);
      const bool packs = takes_packs<T>(x, lines.length) && takes_packs<T>(y, lines.length);
      launch_lines<T, 32, 16>(gpu, name, a.queue, lines, sizeof(Exponentials),
                              SoftmaxLines<T>{x, y, lines, logarithm}, packs,
                              [&](auto pack, auto values, auto whole, const Rows& rows) {
                                return SoftmaxRows<T, pack, values, whole>{x, y, rows, logarithm};
                              });
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request, const Gpu& gpu,
                                                 bool logarithm) {
  const Lines lines =
      lines_of(request.inputs[0], static_cast<std::size_t>(request.attributes().integer("axis")));
  const char* name = logarithm ? "log_softmax_grad" : "softmax_grad";
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (lines.count == 0) return;
      const T* dy = static_cast<const T*>(a.inputs[0]);
      const T* y = static_cast<const T*>(a.inputs[1]);
      T* dx = static_cast<T*>(a.outputs[0]);
      const bool packs = takes_packs<T>(dy, lines.length) && takes_packs<T>(y, lines.length) &&
                         takes_packs<T>(dx, lines.length);
      launch_lines<T, 16, 16>(
          gpu, name, a.queue, lines, sizeof(float),
          SoftmaxGradLines<T>{dy, y, dx, lines, logarithm}, packs,
          [&](auto pack, auto values, auto whole, const Rows& rows) {
            return SoftmaxGradRows<T, pack, values, whole>{dy, y, dx, rows, logarithm};
          });
    });
  });
}

// One layout without holes for all operands.
std::vector<Proposal> propose_dense(const KernelRequest& request) {
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  return {
      {.inputs = std::vector<LayoutConstraint>(request.inputs.size(), dense), .outputs = {dense}}};
}

}  // namespace

void add_softmax(KernelList& list, const Gpu& gpu) {
  const auto refuse = only_floats({0});
  for (const bool logarithm : {false, true}) {
    const std::string op = logarithm ? "LogSoftmax" : "Softmax";
    const std::string name = logarithm ? "cuda.log_softmax" : "cuda.softmax";
    list.push_back({name, op, refuse, propose_dense, [gpu, logarithm](const KernelRequest& r) {
                      return prepare_forward(r, gpu, logarithm);
                    }});
    list.push_back(
        {name + "_grad", op + "Grad", refuse, propose_dense,
         [gpu, logarithm](const KernelRequest& r) { return prepare_gradient(r, gpu, logarithm); }});
  }
}

}  // namespace tandem::cuda::reductions
