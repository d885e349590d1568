#include "kernels/cpu/convolution/onednn.h"

#include <cassert>

namespace tandem {

dnnl::memory::desc onednn_desc(const Shape& shape, const Layout& layout) {
  assert(layout.is_strided());
  return {dnnl::memory::dims(shape.begin(), shape.end()), dnnl::memory::data_type::f32,
          dnnl::memory::dims(layout.strides.begin(), layout.strides.end())};
}

OneDnnCall::OneDnnCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
                       const dnnl::memory::desc& scratchpad, std::vector<Slot> slots)
    : primitive_(primitive), stream_(engine), scratchpad_bytes_(scratchpad.get_size()) {
  slots.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  memories_.reserve(slots.size());
  for (const Slot& slot : slots) {
    memories_.push_back(dnnl::memory(slot.desc, engine, DNNL_MEMORY_NONE));
    arguments_.push_back({slot.argument, memories_.back().get()});
  }
}

void OneDnnCall::run(std::initializer_list<const void*> addresses, void* scratchpad) noexcept {
  assert(addresses.size() + 1 == memories_.size());
  std::size_t i = 0;
  for (const void* address : addresses) {
    dnnl_memory_set_data_handle(memories_[i++].get(), const_cast<void*>(address));
  }
  dnnl_memory_set_data_handle(memories_[i].get(), scratchpad);
  [[maybe_unused]] const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  assert(status == dnnl_success);
}

OneDnnCall onednn_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                          const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc desc(engine, from, engine, to, onednn_attributes());
  return {engine,
          dnnl::reorder(desc),
          desc.scratchpad_desc(),
          {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

dnnl::primitive_attr onednn_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace tandem
