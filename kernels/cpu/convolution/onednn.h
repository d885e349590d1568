// The one place that meets oneDNN: descriptors from our layouts, primitives with the caller's
// scratchpad and ready argument arrays. dnnl.hpp is included here only.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "engine/device/kernel.h"
#include "kernels/cpu/threads/onednn_regions.h"

namespace tandem {

/// Float32 descriptor of a strided value, as the layout says.
dnnl::memory::desc onednn_desc(const Shape& shape, const Layout& layout);

/// A primitive with its memory objects made beforehand; a run sets their addresses and executes.
class OneDnnCall {
 public:
  struct Slot {
    int argument;  // DNNL_ARG_…
    dnnl::memory::desc desc;
  };

  OneDnnCall() = default;
  /// `slots` in the order in which `run` gets addresses.
  OneDnnCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
             const dnnl::memory::desc& scratchpad, std::vector<Slot> slots);

  bool empty() const { return arguments_.empty(); }
  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  void run(std::initializer_list<const void*> addresses, void* scratchpad) noexcept;

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::size_t scratchpad_bytes_ = 0;
};

/// Copies between two descriptors of the same value.
OneDnnCall onednn_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                          const dnnl::memory::desc& to);

/// Attributes that every primitive here has: the scratchpad is the caller's.
dnnl::primitive_attr onednn_attributes();

}  // namespace tandem
