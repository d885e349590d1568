// Operators over all ranks, in one process that acts for all of them: as if every rank had the same
// operands, and this one were rank 0. Steps of several ranks run the communicator of a device
// instead.
#include "engine/operators/tables/rows.h"
#include "kernels/reference/network_support.h"
#include "kernels/reference/support.h"

namespace tandem::reference {
namespace {

// How many equal operands are added: their sum is that many times one of them; every other
// reduction gives the operand itself.
std::int64_t equal_terms(const KernelRequest& request) {
  return request.attributes().text("reduction") == "sum" ? request.attributes().integer("ranks")
                                                         : 1;
}

template <class T>
T times(T x, std::int64_t count) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else {
    using C = Computed<T>;
    return T(static_cast<C>(static_cast<C>(x) * static_cast<C>(count)));
  }
}

template <class T>
std::unique_ptr<PreparedKernel> reduced(std::vector<Position> from, std::vector<Position> to,
                                        std::int64_t terms) {
  return prepared([terms, from = std::move(from),
                   to = std::move(to)](const KernelArguments& arguments) mutable {
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (arguments.outputs[k] == nullptr) continue;
      const T* x = static_cast<const T*>(arguments.inputs[k]);
      T* y = static_cast<T*>(arguments.outputs[k]);
      from[k].reset();
      to[k].reset();
      for (std::int64_t i = 0; i < to[k].count(); ++i) {
        y[to[k].at()] = times(x[from[k].at()], terms);
        from[k].next();
        to[k].next();
      }
    }
  });
}

std::unique_ptr<PreparedKernel> all_reduce(const KernelRequest& request) {
  return with_type(request.inputs[0].type.dtype, [&](auto tag) {
    return reduced<decltype(tag)>(walks(request.inputs), walks(request.outputs),
                                  equal_terms(request));
  });
}

// The first of the parts along axis 0, which is always full.
std::unique_ptr<PreparedKernel> reduce_scatter(const KernelRequest& request) {
  std::vector<Position> parts;
  for (std::size_t k = 0; k < request.outputs.size(); ++k)
    parts.emplace_back(request.outputs[k].type.shape, request.inputs[k].layout.strides);
  return with_type(request.inputs[0].type.dtype, [&](auto tag) {
    return reduced<decltype(tag)>(std::move(parts), walks(request.outputs), equal_terms(request));
  });
}

// Copies of x one after the other, one for each rank.
std::unique_ptr<PreparedKernel> all_gather(const KernelRequest& request) {
  const std::size_t size = size_of(request.inputs[0].type.dtype);
  std::vector<std::vector<Position>> parts;
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    const Operand &x = request.inputs[k], &y = request.outputs[k];
    std::vector<Position>& own = parts.emplace_back();
    for (std::int64_t rank = 0; y.present && rank < request.attributes().integer("ranks"); ++rank) {
      own.emplace_back(x.type.shape, y.layout.strides,
                       rank * x.type.shape[0] * y.layout.strides[0]);
    }
  }
  return prepared([size, from = walks(request.inputs), parts](const KernelArguments& a) mutable {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      for (Position& part : parts[k]) copy_elements(a.inputs[k], from[k], a.outputs[k], part, size);
    }
  });
}

// Element i of a state is in the part of rank i / share, all of which are like this one's.
std::unique_ptr<PreparedKernel> gather_states(const KernelRequest& request) {
  std::vector<Places> from, to;
  std::vector<std::int64_t> shares;
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    from.emplace_back(request.inputs[2 * k + 1]);
    to.emplace_back(request.outputs[k]);
    shares.push_back(from.back().count());
  }
  return prepared([=, size = size_of(request.inputs[0].type.dtype)](const KernelArguments& a) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (a.outputs[k] == nullptr) continue;
      with_size(size, [&](auto tag) {
        using T = decltype(tag);
        const T* x = static_cast<const T*>(a.inputs[2 * k + 1]);
        T* y = static_cast<T*>(a.outputs[k]);
        for (std::int64_t i = 0; i < to[k].count(); ++i) y[to[k](i)] = x[from[k](i % shares[k])];
      });
    }
  });
}

// As if each rank, all like this one, sent its part 0 to rank 0.
std::unique_ptr<PreparedKernel> all_to_all(const KernelRequest& request) {
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  const std::size_t size = size_of(x.type.dtype);
  const std::int64_t ranks = request.attributes().integer("ranks");
  Shape part = x.type.shape;
  part[0] /= ranks;
  std::vector<Position> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    parts.emplace_back(part, y.layout.strides, rank * part[0] * y.layout.strides[0]);
  return prepared(
      [size, from = Position(part, x.layout.strides), parts](const KernelArguments& a) mutable {
        for (Position& to : parts) copy_elements(a.inputs[0], from, a.outputs[0], to, size);
      });
}

// As if each rank, all like this one, sent its first rows to rank 0, as many as this one expects.
std::unique_ptr<PreparedKernel> exchange_rows(const KernelRequest& request) {
  const TensorType& y = request.outputs[0].type;
  return with_type(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    T rest{};
    if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>)
      rest = absent_id<T>;
    const std::int64_t rows = y.shape[0], ranks = request.attributes().integer("ranks");
    return prepared([=, columns = rows > 0 ? y.elements() / rows : 0, x = Places(request.inputs[0]),
                     received = Places(request.inputs[2]),
                     to = Places(request.outputs[0])](const KernelArguments& a) {
      const T* from = static_cast<const T*>(a.inputs[0]);
      T* made = static_cast<T*>(a.outputs[0]);
      std::int64_t row = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto count = static_cast<const std::int32_t*>(a.inputs[2])[received(rank)];
        for (std::int64_t k = 0; k < count && row < rows; ++k, ++row) {
          for (std::int64_t c = 0; c < columns; ++c)
            made[to(row * columns + c)] = from[x(k * columns + c)];
        }
      }
      for (std::int64_t i = row * columns; i < rows * columns; ++i) made[to(i)] = rest;
    });
  });
}

}  // namespace

void add_collectives(KernelList& list) {
  list.push_back(reference_kernel("all_reduce", "AllReduce", refuse_nothing, all_reduce));
  list.push_back(reference_kernel("all_gather", "AllGather", refuse_nothing, all_gather));
  list.push_back(
      reference_kernel("reduce_scatter", "ReduceScatter", refuse_nothing, reduce_scatter));
  list.push_back(reference_kernel("all_to_all", "AllToAll", refuse_nothing, all_to_all));
  list.push_back(reference_kernel("exchange_rows", "ExchangeRows", refuse_nothing, exchange_rows));
  list.push_back(reference_kernel("gather_states", "GatherStates", refuse_nothing, gather_states));
}

}  // namespace tandem::reference
